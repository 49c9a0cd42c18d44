"""The rooms of the package import downhill only: each from the rooms that stand before it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx
import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.cli.commands import COMMANDS

PACKAGE = Path(lbr2pgo.__file__).parent

# In the order of the data: a room imports only from rooms before it, so there can be no circle. A
# folder is one room, and so is a module that stands alone.
ORDER = (
    "support",
    "native",
    "model",
    "program",
    "sources",
    "counting",
    "replay",
    "evidence",
    "profiles",
    "conversion",
    "provenance",
    "fleet",
    "recorders",
    "analyses",
    "reports",
    "dumping",
    "pgo",
    "api",
    "",
    "cli",
    "__main__",
)

# What kinds of processors there are.
ARCHITECTURE = {"program/code/architecture", "program/code/registry"}

# Rooms that know less than what stands before them, and all that they may know of it.
KNOWS_ONLY = {
    # Nothing of the field.
    "support": set(),
    # Pure loops over arrays.
    "native": {"support/arrays"},
    # Code, and nothing of samples.
    "program": {"support", "native"},
    # Inputs and their counting know an image by its layout.
    "sources": {"support", "model", "native", "program/elf/layout"},
    "counting": {"support", "model", "native", "sources", "program/elf/layout", *ARCHITECTURE},
    # A recorder knows what it writes; its accuracy is an analysis.
    "recorders": {"support", "model", "native", "program/elf/image", *ARCHITECTURE},
}


_ENDINGS = (".py", ".pyx", ".pxd", "")
"""Of modules in Python and of loops, and of folders."""


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Path of each module without its ending (`program/cfg`), and its tree."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).with_suffix("").as_posix()
        yield name.removesuffix("__init__").rstrip("/"), ast.parse(path.read_text())


def room_of(module: str) -> str:
    return module.split("/")[0]


def imported(tree: ast.Module) -> Iterator[str]:
    """Modules of this package that are imported anywhere in a module, for types too."""
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the room"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            is_ours = name == "lbr2pgo" or name.startswith("lbr2pgo.")
            if is_ours and name != "lbr2pgo.__version__":
                yield _module_of(name.removeprefix("lbr2pgo").lstrip(".").replace(".", "/"))


@cache
def every_import() -> list[tuple[str, set[str]]]:
    """Each module in Python, and what it imports."""
    return [(module, set(imported(tree))) for module, tree in modules()]


@cache
def every_cimport() -> list[tuple[str, set[str]]]:
    """Each module of loops, and what it cimports or imports."""
    found = []
    for path in sorted((*PACKAGE.rglob("*.pyx"), *PACKAGE.rglob("*.pxd"))):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix()
        names = re.findall(r"^\s*from lbr2pgo\.([\w.]+) c?import", path.read_text(), re.MULTILINE)
        found.append((module, {_module_of(name.replace(".", "/")) for name in names}))
    return found


def _module_of(name: str) -> str:
    """The module that holds what is imported: the name itself, or what it is a part of."""
    while name and not any((PACKAGE / f"{name}{end}").exists() for end in _ENDINGS):
        name = name.rpartition("/")[0]
    return name


def test_modules_import_from_rooms_to_their_left() -> None:
    found = {}
    for module, names in (*every_import(), *every_cimport()):
        room = room_of(module)
        allowed = KNOWS_ONLY.get(room, set(ORDER[: ORDER.index(room)])) | {room}
        found[module] = sorted(name for name in names if not {name, room_of(name)} & allowed)
    assert {module: names for module, names in found.items() if names} == {}


def test_no_modules_need_each_other() -> None:
    graph = networkx.DiGraph(
        (module, name)
        for module, names in (*every_import(), *every_cimport())
        for name in names - {module}
    )
    assert [part for part in networkx.strongly_connected_components(graph) if len(part) > 1] == []


def test_loops_of_a_subject_are_imported_in_its_room_alone() -> None:
    """`_name.pyx` stands beside the Python that calls it; what many call is in `native`."""
    found = [
        (module, name)
        for module, names in (*every_import(), *every_cimport())
        for name in names
        if name.rpartition("/")[2].startswith("_") and room_of(name) != room_of(module)
    ]
    assert found == []


def test_native_holds_what_several_rooms_use() -> None:
    users: dict[str, set[str]] = {}
    for module, names in (*every_import(), *every_cimport()):
        for name in names - {module}:
            if room_of(name) == "native":
                users.setdefault(name, set()).add(room_of(module))
    assert {
        name for name, rooms in users.items() if rooms != {"native"} and len(rooms) < 2
    } == set()


def test_profiles_know_of_no_source_but_three_formats_that_they_share() -> None:
    found = {name for module, names in every_import() if room_of(module) == "profiles"
             for name in names if room_of(name) == "sources"}  # fmt: skip
    assert found <= {
        "sources/code_addresses",
        "sources/parquet_counts",
        "sources/saved_counts",
    }


def test_the_order_names_every_room_once() -> None:
    assert sorted(ORDER) == sorted({room_of(module) for module, _ in modules()})


def test_exceptions_from_the_order_stand_to_the_left_too() -> None:
    for room, known in KNOWS_ONLY.items():
        assert {room_of(name) for name in known} <= set(ORDER[: ORDER.index(room)])


def modules_of_help(*words: str) -> set[str]:
    """What is loaded when these words, which end in a help or a version, are answered."""
    code = (
        "import sys\n"
        "from lbr2pgo.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "words", [("--help",), ("--version",), *((name, "--help") for name in COMMANDS)]
)
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    heavy = {"numpy", "lief", "capstone", "elftools", "networkx", "rich", "backports.zstd"}
    assert not heavy & modules_of_help(*words)


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_costs_little_more_than_python_and_argparse(words: tuple[str, ...]) -> None:
    """`shutil`, which argparse asks for the width of the terminal, loads three compressors."""
    needless = {"typing", "shutil", "inspect", "difflib", "traceback"}
    needless |= {"argparse", "gettext", "importlib"} if words == ("--version",) else set()
    assert not needless & modules_of_help(*words)


@pytest.mark.parametrize(
    ("words", "loaded"),
    [(("--help",), set()), (("--version",), set()), (("help", "share"), {"share"})],
)
def test_only_the_command_that_is_asked_for_is_loaded(
    words: tuple[str, ...], loaded: set[str]
) -> None:
    ours = {name for name in modules_of_help(*words) if name.startswith("lbr2pgo.")}
    assert {name for name in COMMANDS if f"lbr2pgo.cli.{name}" in ours} == loaded
    assert {name.split(".")[1] for name in ours} <= {"cli", "support"}


def test_a_whole_conversion_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Graphs, names of C++, pages and progress bars are for other commands, or for a terminal."""
    code = "import sys; from lbr2pgo.cli import main; main(sys.argv[1:]); print('', *sys.modules)"
    words = ["convert", RECORDING, "--binary", PIE, "--llvm", tmp_path / "a", "--fdata",
             tmp_path / "b", "--counts", tmp_path / "c"]  # fmt: skip
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    needless = {
        "lief",
        "networkx",
        "rich",
        "jinja2",
        "elftools",
        "numpy.ma",
        "hashlib",
        "tempfile",
        "capstone",
    }
    assert not needless & set(done.stdout.split())


def test_the_package_alone_imports_nothing_heavy() -> None:
    code = "import sys, lbr2pgo; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "lief"} & set(done.stdout.split())


def test_nothing_prints_or_exits_below_the_command_line() -> None:
    """Library code gives results and raises; only `cli` talks (STYLE: options as one object)."""
    found = []
    for module, tree in modules():
        if room_of(module) in ("cli", "__main__"):
            continue
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = {f.id for f in calls if isinstance(f, ast.Name)}
        names |= {
            f"{getattr(f.value, 'id', '')}.{f.attr}" for f in calls if isinstance(f, ast.Attribute)
        }
        found += [(module, name) for name in names & {"print", "exit", "sys.exit", "input"}]
    assert found == []
