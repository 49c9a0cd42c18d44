"""`lbr2pgo pgo --search`: the kinds of profiles that were tried, and which one to keep."""

from __future__ import annotations

import shlex
from argparse import ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from lbr2pgo.cli.measure import print_measured

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lbr2pgo.pgo.kinds import ProfileKind
    from lbr2pgo.pgo.loop_options import LoopOptions
    from lbr2pgo.pgo.search import Search


def run_search(args: Namespace, loop: LoopOptions) -> int:
    """Search, and print what was found."""
    from lbr2pgo.cli.step_lines import StepLines  # which takes time to import
    from lbr2pgo.pgo.search import Search
    from lbr2pgo.pgo.search_options import SearchOptions
    from lbr2pgo.support.printable import printable

    options = SearchOptions(loop, tuple(args.test), tuple(args.confirm), args.budget, args.jobs)
    shown = StepLines()
    search = Search(options, shown.say, shown.is_over)
    with shown.naming_failures():
        best = search.run()
    _print_table(search)
    if search.measured:
        print_measured(search.measured)
    print(*map(printable, _verdict(search, best)), sep="\n")
    return 0


def _print_table(search: Search) -> None:
    from rich.console import Console
    from rich.table import Table

    from lbr2pgo.support.printable import printable

    judges = search.options.judges
    table = Table(box=None, pad_edge=False)
    table.add_column("profile", no_wrap=True)
    for _ in judges:
        for name in ("instructions", "taken branches", "cycles"):
            table.add_column(name, justify="right", no_wrap=True)
    table.add_column("code", justify="right", no_wrap=True)
    for name in search.results.ranked(judges):
        priced = [search.results.priced(name, text) for text in judges]
        ratios = (
            (*search.results.ratios(name, text), cycles)
            for text, (cycles, _) in zip(judges, priced, strict=True)
        )
        values = (*(value for each in ratios for value in each), priced[0][1])
        table.add_row(printable(name), *(f"{value:.4f}" for value in values))
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, 32 + 40 * len(judges))
    console.print(table)


def _verdict(search: Search, best: ProfileKind | None) -> Iterator[str]:
    """Sentences: what wins, what the training would have chosen, what to keep."""
    from lbr2pgo.pgo.comparison import decided_otherwise
    from lbr2pgo.pgo.post_link import bolt_command, kept_for_bolt

    results, options = search.results, search.options
    for name in sorted(set(results.names) - set(results.ranked(options.judges))):
        yield f"Left out: {name} does not end or write as the plain build does."
    for name, why in sorted(search.left_out.items()):
        yield f"Left out: {name}: {why}"
    yield from search.cures
    yield from _overfitting(search)
    if best is None:
        yield "Verdict: no profile is better than none."
        return
    yield f"Verdict: {best.name} {_how(search, best)}."
    yield f"{options.loop.binary} is that build: ship it."
    yield f"With {search.shown} it {search.change(best)}."
    yield from decided_otherwise(search.measured)
    yield _confirmed(search, best)
    yield from _beside(search, best)
    if best.training:
        yield f"Its training build has {' '.join(best.training)} behind all other flags."
    work = search.variants.place(best)
    yield f"Keep {work.profile}: the compiler reads it in every build."
    if options.loop.compiler == "clang":
        yield f"Keep {search.config}: with --config={search.config}, clang has all of its flags."
    if best.layout == "bolt":
        command = bolt_command("llvm-bolt", work.rebuilt, work.fdata, work.laid_out)
        yield kept_for_bolt(work.fdata, infers=False)
        yield f"Keep as the last step: {shlex.join(command)}"
    yield f"The same alone: lbr2pgo pgo {search.variants.command(best)}"


def _how(search: Search, best: ProfileKind) -> str:
    """It was chosen."""
    if search.is_by_time:
        return "takes least time of what costs about as little"
    if search.ranking.ranked()[0] == best:
        return "costs least"
    margin = search.ranking.no_matter(search.options.judges) - 1
    return f"is the simplest of what costs least within {margin:.1%}"


def _confirmed(search: Search, best: ProfileKind) -> str:
    """What it costs on inputs that had no part in the choice."""
    results, held_back = search.results, search.options.held_back
    if not held_back:
        return "Note: these figures are of the input that chose; --confirm CMD shows if they hold."
    ratios = [results.ratios(best.name, text) for text in held_back]
    said = ", ".join(f"{each[0]:.4f} of the instructions, {each[1]:.4f} of the taken branches"
                     for each in ratios)  # fmt: skip
    is_worse = results.ratio(best.name, held_back) >= 1
    word = "WARNING: it does not hold on" if is_worse else "On"
    return f"{word} what had no part in the choice ({', '.join(held_back)}): {said}."


def _beside(search: Search, best: ProfileKind) -> Iterator[str]:
    """How far the winner gets of what counters in the program gain, if they were tried."""
    other = search.ranking.yardstick(best)
    if other is None:
        return
    commands = search.options.held_back or search.options.judges
    found = search.results.shares(best.name, other.name, commands)
    words = zip(found, ("instructions", "taken branches"), strict=True)
    said = [f"{share:.0%} of the {what}" for share, what in words if share is not None]
    yield (
        f"It saves {' and '.join(said)} that {other.name} saves."
        if said
        else f"There is nothing to compare it with: {other.name} saves less than 1%."
    )
    ratios = [search.results.ratio(each.name, commands) for each in (other, best)]
    if ratios[0] < ratios[1]:
        yield (
            f"Note: {other.name}, which is not chosen, costs {1 - ratios[0] / ratios[1]:.1%} less: "
            f"lbr2pgo pgo {search.variants.command(other)}"
        )


def _overfitting(search: Search) -> Iterator[str]:
    from lbr2pgo.pgo.measurements import FIXED_WORK, REPEATS
    from lbr2pgo.pgo.timing import BY_CHANCE

    spread = search.results.spread(search.options.judges)
    if spread > REPEATS:
        yield (
            f"Note: the plain build does not repeat itself: two runs differ by {spread:.1%}, and "
            f"builds that differ by less than {spread * BY_CHANCE:.0%} count as the same: "
            f"{FIXED_WORK}."
        )
    if not search.options.tests:
        yield "Note: judged by what it was trained with; --test CMD gives other inputs."
        return
    trained, loss = search.ranking.loss_by(search.options.training.commands)
    if loss:
        yield (
            f"Warning: by the training alone {trained.name if trained else 'plain'} would win, and "
            f"cost {loss:.1%} more in the tests: is the training like what the program is used for?"
        )


def seconds(text: str) -> float:
    """A time such as 90, 90s, 20m or 2h; raises ArgumentTypeError for anything else."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(number) * units[unit]
    except ValueError:
        raise ArgumentTypeError(f"not a time: {text} (90s, 20m or 2h)") from None
