"""Propeller's clusters of blocks, for a compiler that lays them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from lbr2pgo.model.incomplete import EmptyProfileError
from lbr2pgo.model.waterfall import Reason, Step
from lbr2pgo.profiles.base import Form, Output, OutputFormat, Written, flag, readers_in, shell_word
from lbr2pgo.profiles.work import Work
from lbr2pgo.support.dataclass import dataclass
from lbr2pgo.support.errors import InputError, OutputError

if TYPE_CHECKING:
    from lbr2pgo.profiles.propeller.block_flow import BlockFit, BlockFlow
    from lbr2pgo.profiles.propeller.block_layout import Layout
    from lbr2pgo.profiles.propeller.cluster_names import Named
    from lbr2pgo.profiles.propeller.files import Cluster
    from lbr2pgo.profiles.propeller.path_cloning import ClonedFunction
    from lbr2pgo.program.block_map import BlockMap

_FEWEST_AT_BLOCKS = 0.95
"""A map of another build has blocks elsewhere. Of one that fits, all jumps of the program lead to
blocks but those that assembly hides."""

UNNAMED = {
    "no_symbol": Reason(
        "without a name in the symbol table", "give the binary with its symbol table"
    ),
    "two_of_one_name": Reason(
        "that share their name with another one", "build with -funique-internal-linkage-names"
    ),
    "odd_name": Reason("with a blank, a slash or a line break in their names", "rename them"),
}
"""Why functions are left out."""
RAN = Step("propeller_functions_ran", "functions with a block map that ran", "functions", None)
FUNCTIONS = Step(
    "propeller_functions",
    "functions laid out for Propeller",
    "functions",
    RAN.key,
    UNNAMED,
)


def ordered_by(order: Path, sections: str = "-ffunction-sections") -> str:
    """Words of a compiler's command that let lld order sections, silent on missing ones."""
    link = f"-Wl,--no-warn-symbol-ordering,--symbol-ordering-file={shell_word(order)}"
    return f"{sections} -fuse-ld=lld {link}"


@dataclass(frozen=True, slots=True)
class PropellerOutput(Output):
    """Clusters of blocks, for clang."""

    path: Path = field(
        metadata=flag("--propeller-cc", "clusters for clang -fbasic-block-sections=list=")
    )
    version: Literal["1", "0"] = field(
        default="1", metadata=flag("--propeller-version", "form of the clusters (1)")
    )
    counts: bool = field(
        default=False,
        metadata=flag("--propeller-counts", "counts and hashes of blocks too, for LLVM 22 on"),
    )

    clone_paths: bool = field(
        default=False,
        metadata=flag("--propeller-clone-paths", "clone hot paths, by 3 %% of the code at most"),
    )

    def __post_init__(self) -> None:
        for asked, what, option in (
            (self.counts, "counts", "--propeller-counts"),
            (self.clone_paths, "clones", "--propeller-clone-paths"),
        ):
            if asked and self.version == "0":
                raise InputError(
                    f"version 0 of Propeller's clusters holds no {what}",
                    cure=f"Leave out --propeller-version 0 or {option}.",
                )

    @property
    def next_step(self) -> str:
        """See `Output`."""
        return f"clang -O2 -fbasic-block-sections=list={shell_word(self.path)}"

    def write(self, work: Work) -> Written:
        """See `Output`."""
        from lbr2pgo.profiles.propeller.files import write_clusters

        laid = work.once(laid_out)
        build = work.program.image.build_id or "unknown"
        with work.writing("Propeller's clusters"):
            clones = work.once(cloned) if self.clone_paths else None
            found = laid.clusters(clones, with_counts=self.counts)
            write_clusters(found, self.path, int(self.version), [f"of the build {build}"])
        return Written(laid.tallies, (laid.note,))


@dataclass(frozen=True, slots=True)
class LaidOut:
    """What both of Propeller's files hold."""

    layout: Layout
    blocks: BlockMap
    names: Sequence[Named]
    flow: BlockFlow
    tallies: Mapping[str, int]
    note: str
    """How well the block map fits."""

    def clusters(
        self, clones: Mapping[int, ClonedFunction] | None = None, *, with_counts: bool = False
    ) -> list[Cluster]:
        """Functions in their new order."""
        from lbr2pgo.profiles.propeller.files import clusters

        counted = self.flow if with_counts else None
        return clusters(self.layout, self.blocks, self.names, counted, clones)


def cloned(work: Work) -> dict[int, ClonedFunction]:
    """Functions of which paths are cloned: to be had by `Work.once`."""
    from lbr2pgo.profiles.propeller.path_cloning import clone_paths

    laid = work.once(laid_out)
    with work.timings.stage("clone paths"):
        return clone_paths(work.flow, laid.blocks, laid.flow, laid.layout)


def laid_out(work: Work) -> LaidOut:
    """Blocks and functions in their new order: to be had by `Work.once`.

    Raises OutputError where there is no block map, or where it is of another build.
    """
    from lbr2pgo.profiles.propeller.block_flow import block_flow
    from lbr2pgo.profiles.propeller.block_layout import lay_out
    from lbr2pgo.profiles.propeller.cluster_names import compiler_names
    from lbr2pgo.program.block_map import open_block_map

    with work.timings.stage("lay blocks out"):
        try:
            blocks = open_block_map(work.program.image)
        except InputError as error:
            raise _nothing(error.what, error.where, error.cure) from error
        found = block_flow(work.flow, blocks)
        if found.fit.to_starts < _FEWEST_AT_BLOCKS * found.fit.jumps:
            cure = "Give the binary that was recorded, as the linker left it."
            raise _nothing(
                f"the block map is of another build: {_said(found.fit)}", blocks.origin, cure
            )
        layout = lay_out(work.flow, blocks, found)
        entries = blocks.entry[layout.function].tolist()
        names, lost = compiler_names(entries, work.program.symbols, work.debug)
    ran = len(layout)
    tallies = {RAN.key: ran, FUNCTIONS.key: ran - sum(lost.values())}
    tallies |= {f"{FUNCTIONS.key}/{why}": number for why, number in lost.items()}
    if not tallies[FUNCTIONS.key]:
        raise EmptyProfileError(tallies, what="no function with a block map and a name ran")
    return LaidOut(layout, blocks, names, found, tallies, _said(found.fit))


def _nothing(why: str, where: str | None, cure: str | None) -> OutputError:
    return OutputError(f"nothing was written for Propeller: {why}", where=where, cure=cure)


def _said(fit: BlockFit) -> str:
    """A run starts where a jump leads to, and ends with one."""
    starts, ends = (each / fit.jumps if fit.jumps else 1.0 for each in (fit.to_starts, fit.at_ends))
    return (
        f"{starts:.2%} of {fit.jumps:,} jumps within functions lead to the start of a block, "
        f"{ends:.2%} stand at the end of one"
    )


FORMAT = OutputFormat(
    name="propeller",
    suffix=".propeller-cc",
    output=PropellerOutput,
    forms=(
        Form(
            "propeller",
            "Propeller clusters of blocks",
            "clang reads it (version 1, or 0)",
            "clang -fbasic-block-sections=list=",
            needs="a block map",
        ),
    ),
    references=(
        "LLVM: llvm/lib/Object/ELF.cpp decodeBBAddrMapImpl",
        "LLVM: llvm/lib/CodeGen/BasicBlockSectionsProfileReader.cpp",
        "LLVM: llvm/lib/Transforms/Utils/CodeLayout.cpp",
    ),
    limitations=(
        "needs a program built with -fbasic-block-address-map",
        "both builds must compile alike: the numbers of blocks change with the code",
        "functions of one file that share a name are left out, and of several where their DWARF "
        "does not tell the files",
    ),
    steps=(RAN, FUNCTIONS),
    readers=readers_in("propeller.written", "CLUSTERS"),
)
