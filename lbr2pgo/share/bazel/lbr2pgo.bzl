"""Branch profiles in a Bazel build. Copy this file into the workspace, beside a BUILD file.

    load("//:lbr2pgo.bzl", "lbr2pgo_bolt", "lbr2pgo_profile")

    pgo = lbr2pgo_profile(name = "app_profile", profile = "app.prof")

    cc_binary(
        name = "app",
        srcs = ["app.c"],
        additional_compiler_inputs = pgo.inputs,
        copts = pgo.copts,
        linkopts = pgo.linkopts,
    )

    lbr2pgo_bolt(name = "app.bolt", binary = ":app", profile = "app.fdata", compiled_with = pgo)

Or have clang and lld lay it out, and add `layout`'s to each of these, and `layout.inputs` to
`additional_linker_inputs`:

    layout = lbr2pgo_propeller(name = "app_layout", clusters = "app.propeller-cc",
                               order = "app.propeller-ld")

`lbr2pgo_startup(name = "app_order", order = "app.startup")` has lld order functions as the program's
start wants them, and is added likewise.

With `--define=lbr2pgo=training`, and `--platform_suffix=-training` for a folder of its own, Bazel
builds a program that is recorded and not shipped: no profile is used, and clang is given
frame pointers, for call chains, and `training_flags` of `lbr2pgo_profile` behind its other flags.

With `carry = glob(["*.c"])`, the sources, `lbr2pgo_profile` moves the counts of a committed profile to
where its lines are now (docs/carrying.md); with `min_carried = "0.8"` fewer end the build.

Instead of files, all take `recordings` and `recorded`, the binary that was recorded. A file that
isn't there yet gives a plain build and a line of warning. A stale profile is used, and how stale it
is stands in the log; another program's ends the build. The command lbr2pgo must be in the PATH of
actions: `--action_env=PATH`. See docs/builds.md.
"""

_GATES = ["--max-stale", "0.5", "--max-missing", "0.5"]

_FRAME_POINTERS = [
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-fno-optimize-sibling-calls",
]

# With probes: so that samples tell of branches, not what the source expects; and in training builds,
# so that calls which are alike stay apart, each with its own.
_OVERWRITTEN = ["-Xclang", "-mllvm", "-Xclang", "-overwrite-existing-weights"]
_KEPT_CALLS = ["-mllvm", "-enable-tail-merge=0", "-mllvm", "-simplifycfg-sink-common=0"]

_ENDINGS = {
    "--llvm": ".prof",
    "--afdo": ".afdo",
    "--fdata": ".fdata",
    "--propeller-cc": ".propeller-cc",
    "--propeller-ld": ".propeller-ld",
    "--startup-order": ".startup",
}

def _run(ctx, inputs, outputs, mnemonic, command, arguments):
    """Runs a shell command with positional arguments."""
    ctx.actions.run_shell(
        inputs = inputs,
        outputs = outputs,
        command = command,
        arguments = arguments,
        mnemonic = mnemonic,
        use_default_shell_env = True,
    )

def _convert_impl(ctx):
    output = ctx.outputs.out
    files = ctx.files.recordings
    arguments = [ctx.file.recorded.path, ctx.attr.form, output.path] + [f.path for f in files]
    _run(
        ctx,
        inputs = files + [ctx.file.recorded],
        outputs = [output],
        mnemonic = "Lbr2pgoConvert",
        command = 'elf=$1 form=$2 out=$3; shift 3; lbr2pgo convert "$@" --binary "$elf" "$form" "$out"',
        arguments = arguments,
    )
    return [DefaultInfo(files = depset([output]))]

_convert = rule(
    implementation = _convert_impl,
    attrs = {
        "form": attr.string(values = _ENDINGS.keys(), mandatory = True),
        "out": attr.output(mandatory = True),
        "recorded": attr.label(allow_single_file = True, mandatory = True),
        "recordings": attr.label_list(allow_files = True, mandatory = True),
    },
)

def _carry_impl(ctx):
    # The profile is a link into the work tree, which git tells of.
    _run(
        ctx,
        inputs = [ctx.file.profile] + ctx.files.sources,
        outputs = [ctx.outputs.out],
        mnemonic = "Lbr2pgoCarry",
        command = 'lbr2pgo carry --committed "$(realpath "$1")" -o "$2" --min-carried "$3"',
        arguments = [ctx.file.profile.path, ctx.outputs.out.path, ctx.attr.min_carried],
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

_carry = rule(
    implementation = _carry_impl,
    attrs = {
        "min_carried": attr.string(mandatory = True),
        "out": attr.output(mandatory = True),
        "profile": attr.label(allow_single_file = True, mandatory = True),
        "sources": attr.label_list(allow_files = True, mandatory = True),
    },
)

def _bolt_impl(ctx):
    binary = ctx.executable.binary
    output = ctx.actions.declare_file(ctx.label.name)
    fdata = ["--fdata", ctx.file.profile.path] if ctx.file.profile else []
    options = ["--option=" + option for option in ctx.attr.options]
    _run(
        ctx,
        inputs = [binary] + ctx.files.profile,
        outputs = [output],
        mnemonic = "Lbr2pgoBolt",
        command = 'lbr2pgo bolt "$@"',
        arguments = [binary.path, "-o", output.path] + _GATES + fdata + options,
    )
    validation = []
    if ctx.file.compile_profile:
        # Bazel builds validation outputs with everything that uses this target.
        fits = ctx.actions.declare_file(ctx.label.name + ".fits")
        validation = [fits]
        _run(
            ctx,
            inputs = [binary, ctx.file.compile_profile],
            outputs = validation,
            mnemonic = "Lbr2pgoCheck",
            command = 'fits=$1; shift; lbr2pgo check "$@" && touch "$fits"',
            arguments = [
                fits.path,
                ctx.file.compile_profile.path,
                "--binary",
                binary.path,
                "--format",
                "line",
            ] + _GATES,
        )
    return [
        DefaultInfo(files = depset([output]), executable = output),
        OutputGroupInfo(_validation = depset(validation)),
    ]

_bolt = rule(
    implementation = _bolt_impl,
    attrs = {
        "binary": attr.label(executable = True, cfg = "target", mandatory = True),
        "compile_profile": attr.label(allow_single_file = True),
        "options": attr.string_list(doc = "of llvm-bolt, in place of lbr2pgo's choice"),
        "profile": attr.label(allow_single_file = True),
    },
    executable = True,
)

def _find_profile(name, form, profile, recordings, recorded):
    """Gives the label of a profile, made of recordings if there are any; None if it isn't there."""
    wanted = recordings + [recorded] if recordings else [profile]
    for file in wanted:
        if not native.glob([file], allow_empty = True):
            # buildifier: disable=print
            print("lbr2pgo: warning: there is no {} yet: a plain build".format(file))
            return None
    if not recordings:
        return profile
    out = name + _ENDINGS[form]
    _convert(name = out + "_convert", form = form, out = out, recorded = recorded, recordings = recordings)
    return out

def lbr2pgo_profile(name, profile = None, recordings = [], recorded = None, probes = False, compiler = "clang", training_flags = ["-O1"], carry = [], min_carried = "0"):
    """Finds or makes a sample profile for clang or GCC.

    Args:
      name: of the targets that it makes.
      profile: what `lbr2pgo convert --llvm` (for GCC --afdo) wrote, a file of this package; may not exist yet.
      recordings: instead, files of this package that hold recordings.
      recorded: the binary that was recorded, a file of this package.
      probes: compile with pseudo probes (docs/probes.md).
      compiler: "clang" or "gcc": macros can't see it.
      carry: sources, whenever one of which changes the counts of a committed profile are moved to where its lines are.
      min_carried: share of the counts, from 0 to 1, below which the build fails.
      training_flags: of clang with --define=lbr2pgo=training, behind frame pointers for call chains.

    Returns:
      A struct: `copts`, `linkopts` and `inputs` (additional_compiler_inputs) of cc rules, and
      `profile`, a label or None.
    """
    is_gcc = compiler == "gcc"
    found = _find_profile(name, "--afdo" if is_gcc else "--llvm", profile, recordings, recorded)
    if found and carry and not recordings:
        carried = name + ".carried"
        _carry(name = carried + "_carry", profile = found, sources = carry, min_carried = min_carried, out = carried)
        found = carried
    flag = "-fauto-profile" if is_gcc else "-fprofile-sample-use"
    over = _OVERWRITTEN if probes and not is_gcc else []
    use = over + ["{}=$(location {})".format(flag, found)] if found else []
    lines = ["-g1"] if is_gcc else ["-g1", "-fdebug-info-for-profiling"]
    numbered = ["-fpseudo-probe-for-profiling"] if probes else []
    training = name + "_training"
    native.config_setting(name = training, define_values = {"lbr2pgo": "training"})
    return struct(
        copts = lines + numbered + select({
            training: [] if is_gcc else _FRAME_POINTERS + (_KEPT_CALLS if probes else []) + training_flags,
            "//conditions:default": use,
        }),
        inputs = [found] if found else [],
        linkopts = ["-Wl,--build-id", "-Wl,--emit-relocs"],
        profile = found,
    )

def lbr2pgo_propeller(name, clusters = None, order = None, recordings = [], recorded = None):
    """Has clang and lld lay a program out; as it is while there is no layout.

    Args:
      name: of the targets that it makes.
      clusters: what `lbr2pgo convert --propeller-cc` wrote, a file of this package; may not exist yet.
      order: what --propeller-ld wrote at once.
      recordings: instead, files of this package that hold recordings.
      recorded: the binary that was recorded, a file of this package.

    Returns:
      A struct: `copts`, `linkopts` and `inputs`, which are those of the linker too.
    """
    blocks = _find_profile(name, "--propeller-cc", clusters, recordings, recorded)
    symbols = _find_profile(name, "--propeller-ld", order, recordings, recorded)
    copts = ["-fbasic-block-address-map", "-ffunction-sections"]
    linkopts = ["-fuse-ld=lld", "-Wl,--lto-basic-block-address-map"]
    if blocks and symbols:
        copts = copts + ["-fbasic-block-sections=list=$(location {})".format(blocks)]
        linkopts = linkopts + [
            "-Wl,--lto-basic-block-sections=$(location {})".format(blocks),
            "-Wl,--no-warn-symbol-ordering",
            "-Wl,--symbol-ordering-file=$(location {})".format(symbols),
        ]
    return struct(
        copts = copts,
        inputs = [blocks, symbols] if blocks and symbols else [],
        linkopts = linkopts,
    )

def lbr2pgo_startup(name, order = None, recordings = [], recorded = None):
    """Has lld order functions as a program's start wants them; as they are while there is no order.

    Args:
      name: of the targets that it makes.
      order: what `lbr2pgo convert --startup-order` wrote, a file of this package; may not exist yet.
      recordings: instead, files of this package that hold recordings.
      recorded: the binary that was recorded, a file of this package.

    Returns:
      A struct: `copts`, `linkopts` and `inputs`, which are those of the linker.
    """
    symbols = _find_profile(name, "--startup-order", order, recordings, recorded)
    return struct(
        copts = ["-ffunction-sections"],
        inputs = [symbols] if symbols else [],
        linkopts = [
            "-fuse-ld=lld",
            "-Wl,--no-warn-symbol-ordering",
            "-Wl,--symbol-ordering-file=$(location {})".format(symbols),
        ] if symbols else [],
    )

def lbr2pgo_bolt(
        name,
        binary,
        profile = None,
        recordings = [],
        recorded = None,
        compiled_with = None,
        options = [],
        **kwargs):
    """Lays a program out anew with llvm-bolt; a plain copy while there is no profile.

    Args:
      name: of the target and of its file.
      binary: label of the program, linked with `linkopts` of `lbr2pgo_profile`.
      profile: what `lbr2pgo convert --fdata` wrote, a file of this package; may not exist yet.
      recordings: instead, files of this package that hold recordings.
      recorded: the binary that was recorded, a file of this package.
      compiled_with: what `lbr2pgo_profile` gave; how stale that profile is gets checked as well.
      options: of llvm-bolt, in place of lbr2pgo's choice.
      **kwargs: of every rule: visibility, tags and so on.
    """
    _bolt(
        name = name,
        binary = binary,
        compile_profile = compiled_with.profile if compiled_with else None,
        options = options,
        profile = _find_profile(name, "--fdata", profile, recordings, recorded),
        **kwargs
    )
