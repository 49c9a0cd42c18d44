"""How heavy functions and calls are, by profiles of every format that tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders.outputs import every_form
from builders.recordings import PIE, RECORDING

from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.profiles.bolt.tool import find_bolt
from lbr2pgo.profiles.llvm.sample_weights import weights as of_samples
from lbr2pgo.profiles.llvm.text import parse
from lbr2pgo.profiles.registry import output, read_written
from lbr2pgo.profiles.weights import CallSite, ProfileWeights

SAMPLES = 128
"""Of the recording."""
LINES = "by source line"
KINDS = {
    "sample_text": f"sample profiles {LINES}",
    "extbinary": f"sample profiles {LINES}",
    "afdo": f"GCC auto profiles {LINES}",
    "fdata": "fdata",
    "bolt_yaml": "BOLT YAML",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("written")
    yaml = () if find_bolt() is None else (output("bolt_yaml", made / "bolt_yaml"),)
    convert(ConvertOptions((RECORDING,), PIE, outputs=(*every_form(made), *yaml)))
    return made


def weights(path: Path) -> ProfileWeights | None:
    if not path.exists():
        pytest.skip("there is no llvm-bolt")
    written = read_written(path)
    assert written is not None
    return written.weights


@pytest.mark.parametrize("name", KINDS)
def test_a_format_tells_which_function_is_heaviest_and_who_calls_it(
    name: str, folder: Path
) -> None:
    found = weights(folder / name)
    assert found is not None
    assert found.kind == KINDS[name]
    heaviest = max(found.functions, key=lambda function: found.functions[function])
    assert heaviest.partition("/")[0] == "run"
    calls = {(site.caller.partition("/")[0], site.callee.partition("/")[0]) for site in found.calls}
    assert ("compile_expression", "next_token") in calls


@pytest.mark.parametrize("name", KINDS)
def test_samples_are_never_taken_for_more_than_they_were(name: str, folder: Path) -> None:
    """Else chance would be taken for change."""
    found = weights(folder / name)
    assert found is not None
    assert found.samples is not None
    assert SAMPLES / 8 < found.samples <= SAMPLES


def test_lists_for_linkers_tell_of_no_counts(folder: Path) -> None:
    assert weights(folder / "symbol_order") is None


def test_clusters_count_their_blocks_and_are_of_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "clusters"
    path.write_text("v1\nf main\nc0 1 3\nc2\nf g\nc0\n")
    found = weights(path)
    assert found == ProfileWeights("Propeller clusters", {"main": 4, "g": 1}, {})
    assert found.samples is None


def test_samples_without_branches_count_each(tmp_path: Path) -> None:
    path = tmp_path / "fdata"
    path.write_text("no_lbr cycles:u:\n1 main 10 7\n1 main 14 2\n1 g 0 3\n")
    found = weights(path)
    assert found == ProfileWeights("fdata", {"main": 9, "g": 3}, {}, per_sample=1)


def test_contexts_of_a_function_add_up() -> None:
    lines = b"[main:3 @ f]:5:2\n 1: 5 g:2\n[f]:4:1\n 1: 4 g:1\n[main]:1:1\n 3: 1 f:2\n"
    found = of_samples(parse(lines.splitlines(), "a profile"))
    assert found.kind == f"sample profiles {LINES} and calling context"
    assert found.functions == {"f": 9, "main": 1}
    assert found.calls == {CallSite("f", "1", "g"): 3, CallSite("main", "3", "f"): 2}


def test_profiles_of_probes_are_another_kind() -> None:
    lines = b"f:5:2\n 1: 5\n !CFGChecksum: 17\n"
    assert of_samples(parse(lines.splitlines(), "a profile")).kind.endswith("by pseudo probe")
