"""The public Python API: `import lbr2pgo`."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from builders.recordings import PIE, RECORDING

import lbr2pgo


def test_every_public_name_is_there_and_documented() -> None:
    assert sorted(lbr2pgo.__all__) == sorted(lbr2pgo._HOMES)
    for name in lbr2pgo.__all__:
        assert getattr(lbr2pgo, name).__doc__, name


def test_other_names_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="module 'lbr2pgo' has no attribute 'convertt'"):
        lbr2pgo.convertt  # noqa: B018
    assert not hasattr(lbr2pgo, "__wrapped__")


def test_the_package_lists_its_names() -> None:
    assert set(lbr2pgo.__all__) <= set(dir(lbr2pgo))


def test_the_example_of_the_package_runs(tmp_path: Path) -> None:
    text = (lbr2pgo.__doc__ or "").replace("# doctest: +SKIP", "")
    names = {"path": RECORDING, "elf": PIE, "out": tmp_path / "out"}
    test = doctest.DocTestParser().get_doctest(text, names, "lbr2pgo", None, 0)
    assert len(test.examples) >= 4
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test).failed == 0
    assert (tmp_path / "out").read_bytes().startswith(b"run:")


def test_the_road_step_by_step() -> None:
    """What `convert` does, from the public parts."""
    program = lbr2pgo.Program.open(PIE)
    counted = lbr2pgo.count(lbr2pgo.open_source(RECORDING), program.image.layout)
    done = lbr2pgo.convert(lbr2pgo.ConvertOptions((RECORDING,), PIE))
    assert list(counted.counts.rows()) == list(done.counts.rows())
    both = lbr2pgo.merge([counted.counts, done.counts])
    assert both.count.sum() == 2 * done.counts.count.sum()
    assert lbr2pgo.DebugInfo.open(program.image).present


def test_errors_are_one_family() -> None:
    for name in ("InputError", "OutputError", "MissingToolError", "EmptyProfileError",
                 "IncompleteError"):  # fmt: skip
        assert issubclass(getattr(lbr2pgo, name), lbr2pgo.Lbr2pgoError)
    with pytest.raises(lbr2pgo.InputError) as raised:
        lbr2pgo.open_source("/no/such/file")
    assert (raised.value.where, raised.value.exit_code) == ("/no/such/file", 2)
    assert raised.value.cure
    assert str(raised.value).endswith(raised.value.cure)
