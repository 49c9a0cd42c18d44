"""BOLT's YAML, which fits builds that have changed a little."""

from __future__ import annotations

from dataclasses import field
from functools import partial
from pathlib import Path

from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.bolt.fdata.format import STEPS, derived_fdata
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class BoltYamlOutput(Output):
    """Counts of blocks with their hashes, made by llvm-bolt of our fdata."""

    path: Path = field(
        metadata=flag("--bolt-yaml", "profile for llvm-bolt --infer-stale-profile, by llvm-bolt")
    )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"lbr2pgo bolt NEWER_ELF --yaml {shell_word(self.path)} -o OUT"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.bolt.tool import needed_bolt
        from lbr2pgo.program.address_translation import has_translation
        from lbr2pgo.support.output import write_pieces

        tool = needed_bolt()
        found = work.once(derived_fdata)
        make = _of_what_it_was_made_of if has_translation(work.program.image) else _of_fdata
        with work.writing("BOLT YAML"):
            write_pieces(self.path, [make(tool, work)])
        return Written(found.tallies)


def _of_fdata(tool: str, work: Work) -> bytes:
    from lbr2pgo.profiles.bolt.fdata import fdata_text
    from lbr2pgo.profiles.bolt.tool import yaml_of_fdata

    write = partial(fdata_text.write, work.once(derived_fdata).rows)
    return yaml_of_fdata(tool, work.program.image.path, write)


def _of_what_it_was_made_of(tool: str, work: Work) -> bytes:
    """Of a program that BOLT made, which llvm-bolt itself takes no profile of."""
    from tempfile import TemporaryDirectory

    from lbr2pgo.profiles.bolt.tool import as_yaml_before
    from lbr2pgo.profiles.preaggregated import traces_text

    with TemporaryDirectory(prefix="lbr2pgo-") as folder:
        traces = Path(folder) / "traces"
        traces_text.write(work.counts, traces)
        return as_yaml_before(tool, work.program.image.path, traces)


FORMAT = OutputFormat(
    name="bolt_yaml",
    suffix=".yaml",
    output=BoltYamlOutput,
    forms=(Form("bolt_yaml", "BOLT YAML", "llvm-bolt writes it", "llvm-bolt", needs="llvm-bolt"),),
    references=("LLVM: bolt/lib/Profile/YAMLProfileWriter.cpp",),
    limitations=(
        "needs llvm-bolt, whose hashes it holds",
        "needs a symbol table",
        "of a program that BOLT made, functions that BOLT left alone have no mispredictions",
    ),
    steps=STEPS,
    readers=readers_in("bolt.yaml.written", "YAML"),
)
