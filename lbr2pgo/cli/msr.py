"""`lbr2pgo msr`: branch registers decoded, and Intel's planned and read."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbr2pgo.cli.commands import COMMANDS
from lbr2pgo.support.errors import InputError, MissingToolError

if TYPE_CHECKING:
    from lbr2pgo.recorders.machine import Machine
    from lbr2pgo.sources.registers.dump_source import Decoded
    from lbr2pgo.sources.registers.intel_lbr import Model
    from lbr2pgo.sources.registers.intel_msr_plan import Write
    from lbr2pgo.sources.registers.register_dump import Register


_CORE_2, _NETBURST = (6, 0x0F), 15
"""Families and a model of Intel's (Linux: arch/x86/include/asm/intel-family.h)."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its three parts."""
    parser = subparsers.add_parser(
        "msr",
        help=COMMANDS["msr"],
        description="Print what dumps of branch registers hold, and set up and read Intel's "
        "(model-specific registers).",
        examples=("lbr2pgo msr plan -j any_call", "lbr2pgo msr decode dump.txt"),
    )
    parser.set_defaults(run=run)
    parts = parser.add_subparsers(dest="part", required=True)
    _add_decode(parts)
    _add_plan(parts)
    _add_snapshot(parts)


def _add_decode(parts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    decode = parts.add_parser("decode", help="print the branches that a register dump holds")
    decode.add_argument("dump", nargs="?", type=Path, help="text or JSON: a register a line")
    _add_device_options(decode)
    decode.add_argument("--format", choices=("table", "json"), default="table")


def _add_plan(parts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    plan = parts.add_parser("plan", help="print the register writes that set up a recording")
    plan.add_argument(
        "-j",
        "--filter",
        default="any",
        help="kinds of branches, and u or k, as perf record -j names them",
    )
    plan.add_argument("--kernel", action="store_true", help="record kernel code too")
    plan.add_argument("--no-user", action="store_true", help="record no user code")
    plan.add_argument("--call-stack", action="store_true", help="keep the open calls only")
    _add_ring_options(plan)
    plan.add_argument("--cpu", type=int, help="number of the core to set up (all cores)")
    plan.add_argument(
        "--format",
        choices=("shell", "table", "json"),
        default="shell",
        help="shell: commands of msr-tools that can be run (the default)",
    )


def _add_snapshot(parts: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    snapshot = parts.add_parser("snapshot", help="read the registers of one core (root)")
    snapshot.add_argument("--cpu", type=int, default=0, help="number of the core (0)")
    _add_device_options(snapshot)
    snapshot.add_argument("-o", "--output", default="-", help="where to write the dump (stdout)")


def _add_device_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        type=Path,
        help="read from this instead of /dev/cpu/N/msr; register r of a regular file is at 8 * r",
    )
    _add_ring_options(parser)


def _add_ring_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--depth", type=int, help="entries of the ring (this machine's)")
    parser.add_argument(
        "--model",
        help="core2, bonnell, silvermont, knl, nehalem, sandybridge, haswell or skylake: the first "
        "with such a ring",
    )
    parser.add_argument(
        "--architectural",
        action=argparse.BooleanOptionalAction,
        help="architectural LBR, or the model-specific one before it (this machine's)",
    )
    parser.add_argument("--root", type=Path, default=Path("/"), help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Do the part that was asked for."""
    part = {"decode": run_decode, "plan": run_plan, "snapshot": run_snapshot}[args.part]
    return part(args)


def run_decode(args: argparse.Namespace) -> int:
    """Print the branches of a dump or of a device."""
    from lbr2pgo.sources.registers.intel_msr import decoded

    if (args.dump is None) == (args.device is None):
        raise InputError(
            "there must be one thing to decode",
            cure="Give a dump: lbr2pgo msr decode FILE, or a device with --device.",
        )
    if args.dump is not None:
        found = _read_dump(args.dump)
    else:
        found = decoded(_read_device(args, args.device), str(args.device))
    _print_ring(found, args.format)
    return 0


def _read_dump(path: Path) -> Decoded:
    """A dump of any processor's registers; what shows nothing of these is taken for Intel's."""
    from lbr2pgo.sources import register_formats
    from lbr2pgo.sources.base import Sniff
    from lbr2pgo.sources.registers.dump_source import DumpSource
    from lbr2pgo.sources.registers.intel_msr import FORMAT
    from lbr2pgo.sources.registers.register_dump import read_text

    head = read_text(path).encode()
    shown = (form for form in register_formats() if form.sniff(head) is Sniff.YES)
    source = next(shown, FORMAT).open(path)
    assert isinstance(source, DumpSource)
    return source.decoded


def run_plan(args: argparse.Namespace) -> int:
    """Print the writes that would configure a recording."""
    from lbr2pgo.sources.registers.intel_msr_plan import TRAPS, plan, wanted_of

    asked = wanted_of([name for name in args.filter.split(",") if name])
    wanted = replace(
        asked,
        user=asked.user and not args.no_user,
        kernel=asked.kernel or args.kernel,
        call_stack=args.call_stack,
    )
    machine = _machine(args)
    writes = plan(_planned_model(args, machine), wanted)
    traps = (
        TRAPS
        if _is_intel(machine)
        else (*TRAPS, f"Not for this machine, which has {_has(machine)}.")
    )
    if args.format == "shell":
        print(*_shell_lines(writes, traps, args.cpu), sep="\n")
    else:
        _print_plan(writes, traps, args.format)
    return 0


def run_snapshot(args: argparse.Namespace) -> int:
    """Read the registers of one core and print them as a dump."""
    from lbr2pgo.support.output import write_pieces

    device = args.device or args.root / f"dev/cpu/{args.cpu}/msr"
    registers = _read_device(args, device)
    lines = (f"{register.key} {register.value:#018x}\n" for register in registers)
    write_pieces(args.output, (line.encode() for line in lines))
    return 0


def _read_device(args: argparse.Namespace, device: Path) -> tuple[Register, ...]:
    from lbr2pgo.sources.registers.msr_device import read_registers

    machine = _machine(args)
    if args.device is None and not _is_intel(machine):
        raise MissingToolError(
            f"this machine has {_has(machine)}",
            cure="Take the snapshot on an Intel machine; `lbr2pgo doctor` tells what this one has.",
        )
    fitting = _fitting_models(args, machine)
    model = _one_of(fitting, {model.bank.name for model in fitting.values()})
    return read_registers(device, model.bank, model.depth)


def _machine(args: argparse.Namespace) -> Machine:
    from lbr2pgo.recorders.machine import read_machine

    return read_machine(args.root)


def _is_intel(machine: Machine) -> bool:
    return machine.cpu.vendor == "GenuineIntel"


def _has(machine: Machine) -> str:
    if machine.cpu.vendor == "unknown":
        return "a processor that is not known"
    return (
        f"no Intel processor but one of {machine.cpu.vendor}: the same register numbers mean "
        "other things there"
    )


def _planned_model(args: argparse.Namespace, machine: Machine) -> Model:
    """The one ring that is meant: those of a depth differ in what they can filter."""
    is_said = not (args.model is None and args.architectural is None and args.depth is None)
    if not is_said and not _is_intel(machine):
        raise InputError(
            f"this machine has {_has(machine)}",
            cure=f"Say for which one to plan: --architectural, or --model {_names()}.",
        )
    fitting = _fitting_models(args, machine, default_depth=32)
    return _one_of(fitting, fitting)


def _one_of(fitting: Mapping[str, Model], differing: Collection[object]) -> Model:
    model = next(iter(fitting.values()))
    if len(differing) > 1:
        raise InputError(
            f"rings of {model.depth} entries differ between processors",
            cure=f"Say which: --model {', '.join(fitting)}.",
        )
    return model


def _names() -> str:
    from lbr2pgo.sources.registers.intel_lbr import MODELS

    return ", ".join(MODELS)


def _fitting_models(
    args: argparse.Namespace, machine: Machine, default_depth: int | None = None
) -> Mapping[str, Model]:
    """The rings that may be meant, by the options or else by this machine; at least one."""
    from lbr2pgo.recorders.branch_recorder import INTEL_ARCH_LBR
    from lbr2pgo.recorders.facility import find_facility
    from lbr2pgo.sources.registers import intel_lbr

    models = intel_lbr.MODELS
    if args.model is not None and args.model not in models:
        raise InputError(f"no ring of {args.model!r} is known", cure=f"Known are {_names()}.")
    architectural, depth, name = args.architectural, args.depth, args.model
    if name is None and _is_intel(machine):
        _refuse_older(machine)
        here = find_facility(machine)
        depth = depth or here.depth
        name = intel_lbr.model_of(machine.cpu.family, machine.cpu.model)
        if architectural is None:
            architectural = here.recorder is INTEL_ARCH_LBR
    if not architectural and name is not None and depth in (None, models[name].depth):
        return {name: models[name]}
    depth = depth or default_depth
    if depth is None:
        raise InputError(
            "this machine doesn't tell how many entries its ring has",
            cure="Say it: --depth 32 on Skylake and later, 16 before.",
        )
    if architectural:
        return {"": intel_lbr.Model(intel_lbr.ARCHITECTURAL, depth, has_call_stack=True)}
    return _of_depth(depth, args.model)


def _refuse_older(machine: Machine) -> None:
    """Raise InputError for processors before Core 2, whose rings have other registers, or none."""
    family, number = machine.cpu.family, machine.cpu.model
    if family is None or number is None:
        return
    if family == _NETBURST or (family, number) < _CORE_2:
        what = "a NetBurst (Pentium 4)" if family == _NETBURST else "older than Core 2"
        raise InputError(
            f"this machine is {what}: its registers are neither planned nor read",
            cure=f"Say for which other one to plan: --model {_names()}.",
        )


def _of_depth(depth: int, name: str | None) -> Mapping[str, Model]:
    """All rings of so many entries, or none if the one that was named has another number."""
    from lbr2pgo.sources.registers.intel_lbr import MODEL_SPECIFIC, MODELS, check_depth

    fitting = {each: model for each, model in MODELS.items() if model.depth == depth}
    if not fitting:
        check_depth(MODEL_SPECIFIC, depth)
    if name is not None:
        raise InputError(
            f"{name} has no ring of {depth} entries",
            cure=f"Those that have one: {', '.join(fitting)}.",
        )
    return fitting


def _print_ring(found: Decoded, form: str) -> None:
    facts = {**found.details, **{why: f"{n:,}" for why, n in found.losses.items() if n}}
    entries = [_entry_fields(*entry) for entry in found.entries]
    for fields, level in zip(entries, found.levels or [None] * len(entries), strict=True):
        fields["level"] = level
    if form == "json":
        _print_json({"facts": facts, "entries": entries})
        return
    rows = [
        (str(i), *(_shown(value) for value in fields.values())) for i, fields in enumerate(entries)
    ]
    notes = [f"{name}: {words}" for name, words in facts.items()]
    columns = ("#", "from", "to", "mispredicted", "in transaction", "abort", "cycles", "type",
               "speculation", "level")  # fmt: skip
    _print_table(columns, rows, notes)


def _entry_fields(source: int, target: int, flags: int) -> dict[str, Any]:
    """One branch as JSON values; None where the registers don't say."""
    from lbr2pgo.model import branch_stacks as stacks

    tells = flags & (stacks.MISPREDICTED | stacks.PREDICTED)
    cycles = stacks.cycles_of(flags)
    words = {stacks.MISSING: None, stacks.SATURATED: "saturated"}
    spec = stacks.SPEC_OUTCOMES[flags >> stacks.SPEC_SHIFT & stacks.SPEC_MASK]
    return {
        "from": f"{source:#x}" if source else None,
        "to": f"{target:#x}" if target else None,
        "mispredicted": bool(flags & stacks.MISPREDICTED) if tells else None,
        "in_transaction": bool(flags & stacks.IN_TRANSACTION),
        "abort": bool(flags & stacks.ABORT),
        "cycles": words.get(cycles, cycles),
        "type": stacks.type_name(flags) or None,
        "speculation": None if spec == "NA" else spec,
    }


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    return "-" if value is None else str(value)


def _print_plan(writes: Sequence[Write], traps: Sequence[str], form: str) -> None:
    if form == "json":
        fields = [
            {"name": w.name, "register": f"{w.number:#x}", "value": f"{w.value:#x}", "why": w.why}
            for w in writes
        ]
        _print_json({"writes": fields, "traps": list(traps)})
        return
    rows = [(w.name, f"{w.number:#x}", f"{w.value:#x}", w.why) for w in writes]
    notes = [f"Trap {i}: {trap}" for i, trap in enumerate(traps, 1)]
    _print_table(("register", "number", "value", "why"), rows, notes)


def _shell_lines(writes: Sequence[Write], traps: Sequence[str], cpu: int | None) -> Iterator[str]:
    """Commands of msr-tools, and why, as a script for root."""
    where = "-a" if cpu is None else f"-p {cpu}"
    yield "modprobe msr"
    for write in writes:
        command = f"wrmsr {where} {write.number:#x} {write.value:#x}"
        yield f"{command:<40}# {write.name}: {write.why}"
    for i, trap in enumerate(traps, 1):
        yield f"# Trap {i}: {trap}"


def _print_json(value: object) -> None:
    import json

    print(json.dumps(value, indent=2))


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]
) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console = Console(highlight=False)
    console.print(table)
    for note in notes:
        console.print(escape(note), soft_wrap=True)
