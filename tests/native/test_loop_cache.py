import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite import binding

import lbr2pgo
from lbr2pgo.native.loop_cache import sources_stamp

PACKAGE = Path(lbr2pgo.__file__).parent
NOTICE = "compiling loops"
RUN = """
import numpy as np
from lbr2pgo.native.traces import is_duplicate
newest = np.array([1, 2, 0], np.uint64)
assert is_duplicate(newest, newest) and not is_duplicate(newest, newest + np.uint64(1))
"""


def start(cache: Path, code: str, **environment: str) -> subprocess.Popen[str]:
    """Run code with a cache in a process of its own."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=env, stderr=subprocess.PIPE, text=True
    )


def run(cache: Path, code: str = RUN, **environment: str) -> str:
    """Compile or load one small loop in a process of its own; what it says."""
    process = start(cache, code, **environment)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return said


def test_only_the_first_run_compiles_and_says_so(tmp_path: Path) -> None:
    assert run(tmp_path).count(NOTICE) == 1
    assert run(tmp_path) == ""


def test_a_loop_is_kept_for_its_processor(tmp_path: Path) -> None:
    run(tmp_path)
    assert NOTICE in run(tmp_path, NUMBA_CPU_NAME="generic")
    assert len(list(tmp_path.iterdir())) == 2


def test_loops_for_a_named_processor_serve_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    def stamps() -> set[str]:
        found = set()
        for machine in ("znver5", "sapphirerapids"):
            monkeypatch.setattr(binding, "get_host_cpu_name", lambda name=machine: name)
            found.add(sources_stamp.__wrapped__())
        return found

    assert len(stamps()) == 2
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert len(stamps()) == 1


def test_loops_with_bounds_checked_are_others(tmp_path: Path) -> None:
    run(tmp_path, NUMBA_BOUNDSCHECK="0")
    assert NOTICE in run(tmp_path, NUMBA_BOUNDSCHECK="1")
    assert len(list(tmp_path.iterdir())) == 2


def old_states(cache: Path, count: int) -> list[Path]:
    """Directories of loops, the oldest first, beside one that is something else."""
    made = [cache / f"loops-{number:024x}" for number in range(count)]
    for age, path in enumerate(made):
        path.mkdir()
        (path / "loop.nbi").write_bytes(b"old")
        os.utime(path, (age, age))
    (cache / "other").mkdir()
    return made


def test_the_oldest_states_go_when_a_new_one_comes(tmp_path: Path) -> None:
    made = old_states(tmp_path, 7)
    run(tmp_path)
    (new,) = set(tmp_path.glob("loops-*")) - set(made)
    assert sorted(tmp_path.iterdir()) == sorted([*made[3:], tmp_path / "other", new])
    assert run(tmp_path) == ""


def test_a_state_that_goes_while_it_is_used_is_made_again(tmp_path: Path) -> None:
    again = RUN + "import shutil\nfrom lbr2pgo.native import loop_cache, words\n"
    again += "shutil.rmtree(loop_cache.directory())\n"
    again += "words.word_at(np.zeros(8, np.uint8), 0)\n"
    run(tmp_path, code=again)
    (loops,) = tmp_path.iterdir()
    assert list(loops.glob("words*.nbc"))


def test_many_processes_make_one_state(tmp_path: Path) -> None:
    """Each removes what is old; none fails over what another has removed."""
    made = old_states(tmp_path, 40)
    code = "from lbr2pgo.native import loop_cache\nloop_cache.directory()\n"
    processes = [start(tmp_path, code) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert not [path for path in made[:36] if path.exists()]
    assert len(list(tmp_path.glob("loops-*"))) == 5


def test_damaged_files_are_compiled_anew(tmp_path: Path) -> None:
    run(tmp_path)
    for path in tmp_path.rglob("*.nb[ci]"):
        path.write_bytes(path.read_bytes()[:50])
    assert NOTICE in run(tmp_path)
    assert run(tmp_path) == ""


def test_where_nothing_can_be_kept_loops_are_compiled_in_memory(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    for _ in range(2):
        assert "no directory to keep them in" in run(occupied / "cache")


def test_what_another_user_has_compiled_is_used(tmp_path: Path) -> None:
    run(tmp_path)
    (loops,) = tmp_path.iterdir()
    before = sorted(loops.iterdir())
    loops.chmod(0o555)
    assert run(tmp_path) == ""
    assert sorted(loops.iterdir()) == before


def test_the_stamp_knows_every_module_that_loops_import() -> None:
    from lbr2pgo.native.loop_cache import CONSTANTS

    imported = set()
    for path in (PACKAGE / "native").glob("*.py"):
        source = path.read_text()
        imported |= set(re.findall(r"^\s*from lbr2pgo\.(\w+)(?!\.)\b", source, re.M))
        imported |= set(re.findall(r"^\s*from lbr2pgo import (\w+)", source, re.M))
    assert imported - {"kernels"} == {Path(name).stem for name in CONSTANTS}
