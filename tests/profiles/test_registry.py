"""What every written format must bring, and what follows from it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from builders.outputs import every_form, forms, held, outputs, usual_forms
from builders.recordings import PIE, RECORDING

import lbr2pgo
from lbr2pgo.cli import _parser
from lbr2pgo.conversion import ConvertOptions, convert
from lbr2pgo.model import waterfall
from lbr2pgo.profiles.base import Form, OutputFormat
from lbr2pgo.profiles.bolt.fdata.fdata_tables import Fdata
from lbr2pgo.profiles.bolt.tool import find_bolt
from lbr2pgo.profiles.llvm.context_forms import STEPS as CONTEXTS
from lbr2pgo.profiles.llvm.format import LlvmOutput
from lbr2pgo.profiles.llvm.sample_profile import SampleProfile
from lbr2pgo.profiles.registry import (
    every_output,
    formats,
    output,
    reader_of,
    steps,
    waterfall_rows,
)
from lbr2pgo.profiles.unsymbolized.format import CONTEXT_RUNS
from lbr2pgo.sources import open_source
from lbr2pgo.support.errors import InputError

FORMATS = pytest.mark.parametrize("form", formats(), ids=lambda form: form.name)
FORMS = pytest.mark.parametrize(
    ("form", "each"), list(usual_forms()), ids=lambda value: getattr(value, "key", "")
)


@pytest.mark.parametrize(
    "name", ["llvm", "fdata", "afdo", "preaggregated", "unsymbolized", "counts"]
)
def test_the_command_that_takes_an_output_takes_any_name(name: str) -> None:
    for path in ("out", "my profiles/it's"):
        words = shlex.split(output(name, path).next_step)
        assert [word for word in words if word.endswith(path)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each form."""
    folder = tmp_path_factory.mktemp("written")
    convert(ConvertOptions((RECORDING,), PIE, outputs=every_form(folder)))
    return folder


@FORMATS
def test_a_format_documents_itself(form: OutputFormat) -> None:
    assert form.forms
    assert form.references
    assert all(each.name and each.written_as and each.read_by for each in form.forms)
    assert form.output.__doc__


def test_names_are_unique() -> None:
    assert len({form.name for form in formats()}) == len(formats())
    keys = [each.key for _, each in forms()]
    assert len(set(keys)) == len(keys)
    flags = [option.flag.word for form in formats() for option in form.output.options()]
    assert not [word for word, number in Counter(flags).items() if number > 1]


@FORMATS
def test_the_first_option_is_the_path_that_asks_for_it(form: OutputFormat) -> None:
    first, *others = form.output.options()
    assert first.is_path
    assert first.name == "path"
    assert all(each.flag.help and each.flag.word.startswith("--") for each in (first, *others))


@FORMS
def test_what_is_written_is_read_back(form: OutputFormat, each: Form, written: Path) -> None:
    """As a written profile that no other format takes for its own, or as a recording."""
    path = written / each.key
    head = path.read_bytes()[: 1 << 16]
    takers = [f.name for f in formats() if any(r.recognises(head) for r in f.readers())]
    if form.only_written:
        with pytest.raises(InputError, match="is only written"):
            reader_of(path)
    elif form.readers():
        assert takers == [form.name]
        reader = reader_of(path)
        assert reader is not None
        assert list(reader.lines(reader.read(path)))
    else:
        assert takers == []
        assert held(path) is None
        open_source(path)


def test_what_can_t_be_read_is_an_input_error(tmp_path: Path) -> None:
    for reader in (reader for form in formats() for reader in form.readers()):
        for path in (tmp_path / "none", tmp_path):
            with pytest.raises(InputError, match="can't be read"):
                reader.read(path)


def test_models_of_what_is_read(written: Path) -> None:
    assert isinstance(held(written / "sample_text"), SampleProfile)
    assert isinstance(held(written / "extbinary"), SampleProfile)
    assert isinstance(held(written / "fdata"), Fdata)


@FORMS
def test_the_command_line_asks_for_the_same_bytes(
    form: OutputFormat, each: Form, written: Path, tmp_path: Path, command_line
) -> None:
    asked = output(form.name, tmp_path / "out", **each.options)
    command_line("convert", RECORDING, "--binary", PIE, *asked.words())
    assert (tmp_path / "out").read_bytes() == (written / each.key).read_bytes()


@pytest.fixture
def command_line(capfd: pytest.CaptureFixture[str]):
    def call(*words: object) -> None:
        args = _parser(["convert"]).parse_args(list(map(str, words)))
        assert args.run(args) == 0
        capfd.readouterr()

    return call


def test_steps_stand_behind_those_that_they_filter() -> None:
    known: dict[str, waterfall.Step] = {}
    for step in steps():
        assert step.after is None or known[step.after].unit == step.unit
        known[step.key] = step
    assert len(known) == len(steps())
    assert steps()[: len(waterfall.STEPS)] == waterfall.STEPS


@FORMATS
def test_every_step_and_reason_is_explained(form: OutputFormat) -> None:
    assert form.steps
    for step in form.steps:
        titles = [reason.title for reason in {**waterfall.REASONS, **step.reasons}.values()]
        assert len(set(titles)) == len(titles)
        assert all(reason.title and reason.cure for reason in step.reasons.values())


@FORMS
def test_an_output_tallies_its_steps(form: OutputFormat, each: Form, tmp_path: Path) -> None:
    asked = output(form.name, tmp_path / "out", **each.options)
    done = convert(ConvertOptions((RECORDING,), PIE, outputs=(asked,)))
    taken = {row.step.key for row in waterfall_rows(done.tallies)}
    ours = {step.key for step in form.steps}
    no_call_stacks = {step.key for step in (*CONTEXTS, CONTEXT_RUNS)}
    assert ours - no_call_stacks - {"fdata_samples"} <= taken  # which is of --no-lbr
    assert taken - ours <= {step.key for step in waterfall.STEPS}


def test_what_two_outputs_need_is_found_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lbr2pgo.profiles.llvm import correlate

    calls = []
    found = correlate.profile_table

    def counted(*arguments: object, **options: object) -> object:
        calls.append(arguments)
        return found(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(correlate, "profile_table", counted)
    both = (LlvmOutput(tmp_path / "a"), LlvmOutput(tmp_path / "b", form="extbinary"))
    done = convert(ConvertOptions((RECORDING,), PIE, outputs=both))
    assert len(calls) == 1
    assert done.written == (tmp_path / "a", tmp_path / "b")
    alone = convert(ConvertOptions((RECORDING,), PIE, outputs=both[:1]))
    assert alone.tallies == done.tallies


@pytest.mark.parametrize("option", ["md5_names", "symbol_list"])
def test_options_must_go_together(option: str) -> None:
    with pytest.raises(InputError, match="neither hashed names nor a symbol list"):
        output("llvm", "x", **{option: True})


def test_outputs_that_do_not_exist_are_told() -> None:
    with pytest.raises(InputError, match="no output lvm\nThere are: llvm, fdata"):
        output("lvm", "x")
    with pytest.raises(InputError, match="fdata has no option form\nIt takes: samples"):
        output("fdata", "x", form="text")
    with pytest.raises(InputError, match="It takes: form, md5_names, symbol_list"):
        output("llvm", "x", md5=True)


def test_an_output_says_how_it_is_asked_for() -> None:
    asked = output("llvm", "out", form="extbinary", md5_names=True)
    assert asked.words() == ("--llvm", "out", "--llvm-format", "extbinary", "--md5")
    assert asked.paths == (Path("out"),)
    assert outputs(fdata=Path("x"))[0].words() == ("--fdata", "x")


def test_the_package_offers_what_makes_outputs() -> None:
    assert lbr2pgo.output("llvm", "x") == LlvmOutput(Path("x"))


def test_a_format_imports_what_it_works_with_where_it_works() -> None:
    """All of them are read before the command line is, of which most need little."""
    code = (
        "import sys; from lbr2pgo.profiles.registry import formats; formats();"
        "print({name for name in sys.modules if name.startswith(('numpy', 'lbr2pgo.program'))})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_all_formats_are_written_beside_each_other_as_far_as_the_program_allows(
    tmp_path: Path,
) -> None:
    """This one has no block map, and no output is asked for by itself."""
    every = every_output(tmp_path / "app")
    assert len({path.name for each in every for path in each.paths}) == len(every)
    done = convert(ConvertOptions((RECORDING,), PIE, optional=every))
    refused = {".propeller-cc", ".propeller-ld", ".data-order", ".data-access.yaml"}
    if find_bolt() is None:
        refused.add(".yaml")
    written = {path.name.removeprefix("app") for path in done.written}
    assert written == {form.suffix for form in formats()} - refused
    assert all(path.exists() for path in done.written)
    why = [note for note in done.notes if "was not written" in note]
    assert len(why) == len(refused)
    assert sum("the program has no block map" in note for note in why) == 2


def test_the_command_line_writes_all_and_says_what_each_is_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("convert", RECORDING, "--binary", PIE, "--all", tmp_path / "app")
    args = _parser(["convert"]).parse_args(list(map(str, words)))
    assert args.run(args) == 0
    said = capfd.readouterr().err
    assert "gcc -O2 -g -fauto-profile=" in said
    assert said.count("wrote ") == len(list(tmp_path.iterdir())) >= len(formats()) - 5
