"""The recipes that users copy: each is linted, and its steps are run."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders.fixtures import ROOT, TESTBINS, Run, Tool
from dockerfile_parse import DockerfileParser

RECIPES = ROOT / "docs" / "recipes"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
RULES = (
    "{extends: default, rules: {line-length: {max: 100}, comments: {min-spaces-from-content: 1}}}"
)
SCHEMAS = {
    "github-actions.yml": "github-workflows",
    "gitlab-ci.yml": "gitlab-ci",
    "retrain.yml": "github-workflows",
    "wheels.yml": "github-workflows",
}


@pytest.mark.parametrize(
    "path",
    [
        *sorted(RECIPES.glob("*.yml")),
        HOOKS,
        ROOT / ".pre-commit-config.yaml",
        ROOT / "CITATION.cff",
    ],
    ids=lambda path: path.name,
)
def test_yaml_is_tidy(path: Path, run: Run) -> None:
    assert run(sys.executable, "-m", "yamllint", "--strict", "-d", RULES, path).stdout == ""


def test_every_pipeline_has_a_schema() -> None:
    assert {path.name for path in RECIPES.glob("*.yml")} == set(SCHEMAS)


@pytest.mark.parametrize(("recipe", "schema"), SCHEMAS.items())
def test_pipelines_follow_their_schema(recipe: str, schema: str, run: Run) -> None:
    check = (sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}")
    run(*check, RECIPES / recipe)


# ---- the image


def instructions(name: str) -> list[str]:
    parser = DockerfileParser(str(RECIPES / "Dockerfile"))
    return [each["value"] for each in parser.structure if each["instruction"] == name]


def test_the_image_is_made_of_files_that_exist_and_what_the_package_needs() -> None:
    words = [line.split() for line in instructions("COPY") if not line.startswith("--from=build")]
    copied = {word for line in words for word in line[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {"pyproject.toml", "setup.py", "README.md", "lbr2pgo"} <= copied


def test_the_image_pins_its_bases_holds_no_compiler_and_runs_as_nobody(run: Run) -> None:
    assert instructions("FROM") == ["python:3.12 AS build", "python:3.12-slim"]
    for commands in instructions("RUN"):
        run("sh", "-n", "-c", commands)
    assert instructions("USER") == ["nobody"]


# ---- the hook


@pytest.fixture
def hooked(tmp_path: Path, run: Run) -> Path:
    """A repository whose one hook is ours, on a profile of `interp.pie`."""
    ours, theirs = tmp_path / "lbr2pgo", tmp_path / "project"
    for folder in (ours, theirs):
        folder.mkdir()
        run("git", "init", "-q", folder)
    shutil.copy(HOOKS, ours)
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    run("git", "add", ".", cwd=ours)
    run("git", *identity, "commit", "-qm", "hooks", cwd=ours)
    revision = run("git", "rev-parse", "HEAD", cwd=ours).stdout.strip()
    # What is tested is the hook, not pip: the package comes from the environment of the tests.
    hook = {
        "id": "lbr2pgo-check",
        "language": "system",
        "args": ["app.prof", "--binary", str(TESTBINS / "x86-64/interp.pie"), "--max-stale", "0.1"],
    }
    repositories = [{"repo": str(ours), "rev": revision, "hooks": [hook]}]
    (theirs / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": repositories}))
    return theirs


def environment(home: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PRE_COMMIT_HOME": str(home)}


def test_the_hook_passes_a_profile_that_fits_and_no_other(hooked: Path, run: Run) -> None:
    def commit_would_pass(profile: str) -> bool:
        (hooked / "app.prof").write_text(profile)
        run("git", "add", ".", cwd=hooked)
        command = (sys.executable, "-m", "pre_commit", "run", "--verbose")
        done = run(*command, cwd=hooked, env=environment(hooked.parent), check=False)
        assert "stale" in done.stdout
        return done.returncode == 0

    assert commit_would_pass("walk:100:10\n 1: 100\n")
    assert not commit_would_pass("another:100:10\n 1: 100\n")


# ---- the pipelines


CONDITIONS = {None: "", "env.USE_PROFILE": '[ "$USE_PROFILE" ] || exit 0'}
"""What a step's `if` asks, as a shell's line."""


def github_job(name: str) -> tuple[dict[str, str], Iterator[str]]:
    """A job's variables, and the script of each step that does not set the machine up."""
    workflow: dict[str, Any] = yaml.safe_load((RECIPES / "github-actions.yml").read_text())
    steps = [step for step in workflow["jobs"][name]["steps"] if "run" in step]
    scripts = (
        f"{CONDITIONS[step.get('if')]}\n{step['run']}"
        for step in steps
        if not step["name"].startswith("Install")
    )
    return workflow["env"], scripts


def gitlab_job(name: str) -> tuple[dict[str, str], Iterator[str]]:
    pipeline: dict[str, Any] = yaml.safe_load((RECIPES / "gitlab-ci.yml").read_text())
    return pipeline["variables"], iter(pipeline[name]["script"])


MAKEFILE = """
build/app: interp.c
\tmkdir -p build
\t$(CC) $(CFLAGS) $< -o $@
all: build/app
clean:
\trm -rf build
"""


@pytest.fixture
def project(tmp_path: Path, tool: Tool) -> Path:
    tool("clang-22")
    tool("qemu-x86_64")
    (tmp_path / "Makefile").write_text(MAKEFILE)
    shutil.copy(TESTBINS / "src" / "interp.c", tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("job", [github_job, gitlab_job], ids=["github", "gitlab"])
def test_a_pipeline_builds_plain_then_refreshes_then_optimises(
    job: Callable[[str], tuple[dict[str, str], Iterator[str]]], project: Path, run: Run
) -> None:
    def play(name: str) -> str:
        """Run a job's steps in turn; what they printed."""
        variables, scripts = job(name)
        given = {"BUILD": "make clean all CC=clang-22", "TRAIN": "build/app 100"}
        passed_on = project / "environment"
        passed_on.write_text("")
        env = {**environment(project), **variables, **given, "GITHUB_ENV": str(passed_on)}
        output = ""
        for script in scripts:
            env |= dict(line.split("=", 1) for line in passed_on.read_text().splitlines())
            output += run("bash", "-e", "-c", script, cwd=project, env=env).stdout
        return output.lower()

    flag = "-fprofile-sample-use"
    plain = play("build")
    assert "no profile is stored yet" in plain
    assert flag not in plain

    play("refresh")
    assert f"{flag}={project}/profile/app.prof interp.c".lower() in play("build")

    (project / "profile" / "app.prof").write_text("run:100:10\n 11: 60\n 60000: 40\n")
    stale = play("build")
    assert re.search(r"^stale +0\.4 ", stale, re.MULTILINE)
    assert flag in stale

    for unfit in ("run:100:10\n 11: 40\n 60000: 60\n", "another:100:10\n 1: 100\n"):
        (project / "profile" / "app.prof").write_text(unfit)
        refused = play("build")
        assert "the stored profile was refused" in refused
        assert flag not in refused


@pytest.mark.slow
def test_a_committed_profile_is_trained_anew_and_the_change_told(project: Path, run: Run) -> None:
    workflow: dict[str, Any] = yaml.safe_load((RECIPES / "retrain.yml").read_text())
    scripts = [step["run"] for step in workflow["jobs"]["retrain"]["steps"][2:] if "run" in step]
    given = {"BUILD": "make clean all CC=clang-22", "TRAIN": "build/app 3"}
    env = {**environment(project), **workflow["env"], **given}
    profile, change = project / "profiles" / "app.prof", project / "change.md"

    def play() -> str:
        for script in scripts:
            run("bash", "-e", "-c", script, cwd=project, env=env)
        return change.read_text()

    assert play() == "The first profile of build/app.\n"
    first = profile.read_bytes()
    assert profile.with_name("app.prof.json").exists()
    play()
    assert profile.read_bytes() == first
    source = project / "interp.c"
    source.write_text(source.read_text().replace("    if (depth == 0", "\n    if (depth == 0"))
    changed = play()
    assert profile.read_bytes() != first
    assert changed.startswith("### sample profiles by source line")
    assert sorted(path.name for path in project.iterdir() if "prof" in path.name) == ["profiles"]


# ---- the packages

CONTROL = """\
Source: app
Maintainer: A <a@example.org>
Build-Depends: debhelper-compat (= 13)

Package: app
Architecture: any
Depends: ${shlibs:Depends}, ${misc:Depends}
Description: a program
"""
CHANGELOG = """\
app (1.0) unstable; urgency=medium

  * First.

 -- A <a@example.org>  Thu, 01 Jan 2026 00:00:00 +0000
"""


@pytest.mark.slow
def test_two_builds_of_a_debian_package_are_one(tmp_path: Path, tool: Tool, run: Run) -> None:
    for name in ("dpkg-buildpackage", "dh", "clang-22"):
        tool(name)
    place = tmp_path / "app"
    (place / "debian").mkdir(parents=True)
    rules = (RECIPES / "debian-rules").read_text()
    rules = re.sub(r"^TRAIN = .*", "TRAIN = ./app 3", rules, flags=re.MULTILINE)
    for name, text in (("rules", rules), ("control", CONTROL), ("changelog", CHANGELOG),
                       ("app.install", "app usr/bin\n")):  # fmt: skip
        (place / "debian" / name).write_text(text)
    (place / "debian" / "rules").chmod(0o755)
    shutil.copy(TESTBINS / "src" / "interp.c", place / "app.c")
    makefile = "app: app.c\n\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $<\nclean:\n\trm -f app\n"
    (place / "Makefile").write_text(makefile)
    env = {**environment(tmp_path), "CC": "clang-22"}
    run("debian/rules", "retrain", cwd=place, env=env)
    assert (place / "debian" / "app.prof.json").exists()
    made = []
    for where in ("one", "another/place"):
        shutil.copytree(place, tmp_path / where / "app")
        run("dpkg-buildpackage", "-b", "-us", "-uc", "-d", cwd=tmp_path / where / "app", env=env)
        (package,) = (tmp_path / where).glob("app_1.0_*.deb")
        made.append(package.read_bytes())
    assert made[0] == made[1]
    (place / "debian" / "app.prof").unlink()
    run("dpkg-buildpackage", "-b", "-us", "-uc", "-d", cwd=place, env=env)
    (plain,) = tmp_path.glob("app_1.0_*.deb")
    assert plain.read_bytes() != made[0]


NIXPKGS = """
let
  make = name: more: script: derivation ({
    inherit name script;
    system = builtins.currentSystem;
    builder = "/bin/sh";
    args = [ "-ec" ''PATH=@path@; export HOME=$PWD; eval "$script"'' ];
  } // more);
in {
  lib = {
    cleanSource = path: path;
    optionalString = wanted: text: if wanted then text else "";
  };
  clangStdenv.mkDerivation = given: make given.pname (removeAttrs given [ "installPhase" ]) (
    ''cp -r $src app; chmod -R +w app; cd app; make CC=clang-22 CFLAGS="$NIX_CFLAGS_COMPILE";''
    + given.installPhase
  );
  runCommand = name: given: script: make name { } script;
  qemu = null;
  gcc = null;
}
"""
"""What the recipe takes of nixpkgs, of the tools that are installed."""


@pytest.mark.slow
def test_two_builds_of_a_nix_package_are_one(tmp_path: Path, tool: Tool, run: Run) -> None:
    place, path = tmp_path / "app", os.environ["PATH"]
    place.mkdir()
    recipe = (RECIPES / "default.nix").read_text()
    (place / "default.nix").write_text(recipe.replace("--an --input --that --is --typical", "3"))
    shutil.copy(TESTBINS / "src" / "interp.c", place / "app.c")
    (place / "Makefile").write_text("app: app.c\n\t$(CC) $(CFLAGS) -o $@ $<\n")
    (tmp_path / "nixpkgs.nix").write_text(
        NIXPKGS.replace("@path@", f"{Path(sys.executable).parent}:{path}")
    )
    folders = {f"NIX_{name}_DIR": str(tmp_path / name) for name in ("STORE", "STATE", "LOG")}
    env = {**environment(tmp_path), **folders, "NIX_CONF_DIR": str(tmp_path), "PATH": path}
    (tmp_path / "nix.conf").write_text("sandbox = false\nbuild-users-group =\nsubstituters =\n")
    words = ("--arg", "pkgs", f"import {tmp_path}/nixpkgs.nix", "--arg", "lbr2pgo", "null")

    def build(*more: str) -> Path:
        done = run(tool("nix-build"), *words, *more, "--no-out-link", cwd=place, env=env)
        return Path(done.stdout.strip())

    plain = build()
    trained = build("-A", "retrained")
    shutil.copy(trained / "app.prof", place)
    made = build()
    build("--check")
    first, second = ((each / "bin" / "app").read_bytes() for each in (plain, made))
    assert first != second
    (trained / "app.prof.json").resolve(strict=True)
