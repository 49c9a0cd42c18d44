"""`lbr2pgo carry`: a profile of an older source or build, for the one that there is now."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lbr2pgo.cli import messages
from lbr2pgo.cli.check import REFUSED, share
from lbr2pgo.cli.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lbr2pgo.profiles.carried.account import Account

_NAMED = 5
"""Functions of a kind that are named."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = subparsers.add_parser(
        "carry",
        help=COMMANDS["carry"],
        description="Move the counts of a profile to where its places are now: those of source "
        "lines by comparing the text of each function in two source trees, those of pseudo "
        "probes and of BOLT by comparing the code of two builds. Nothing is built or run. Says how "
        "sure the counts are, and what was lost.",
        examples=(
            "lbr2pgo carry app.prof --from ../app-1.0 --to . -o new.prof",
            "lbr2pgo carry app.prof --git v1.0..HEAD -o new.prof --json new.json",
            "lbr2pgo carry app.fdata --from ./app-1.0 --to ./app -o new.fdata",
        ),
    )
    parser.add_argument(
        "profile",
        type=Path,
        metavar="OLD",
        help="a profile that convert wrote, of lines, probes or BOLT's",
    )
    for name, dest, what in (("--from", "old", "that it is of"), ("--to", "new", "as it is now")):
        parser.add_argument(
            name, dest=dest, type=Path, metavar="DIR|ELF", help=f"source or program {what}"
        )
    parser.add_argument(
        "--git", metavar="REV[..REV]",
        help="both from the repository here; of one REV, the source now is what lies here",
    )  # fmt: skip
    parser.add_argument(
        "--committed", action="store_true",
        help="from the commit that its provenance (convert --provenance) names to the tree that it "
        "lies in; for builds: says one line, uses it as it is where nobody knows, and touches no "
        "file that holds the same",
    )  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="NEW")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="what became of the counts, by function"
    )
    parser.add_argument(
        "--min-carried", type=share, metavar="X", default=0.0,
        help="write nothing, and end with 1, where a smaller share of the counts is carried",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Carry, write, and say how much it is."""
    if args.committed:
        return _run_committed(args)
    from lbr2pgo.profiles.carried.carry import carry
    from lbr2pgo.support.output import refuse_overwriting, refuse_unwritable, write_pieces

    outputs = [args.output, *filter(None, [args.json])]
    refuse_overwriting(outputs, [args.profile])
    refuse_unwritable(outputs)
    done = carry(args.profile, args.old, args.new, args.git)
    account = done.account
    is_enough = account.carried() >= args.min_carried
    if is_enough:
        done.write(args.output)
    if args.json is not None:
        written = json.dumps(account.as_json(), indent=1) + "\n"
        write_pieces(args.json, [written.encode("utf-8", "surrogateescape")])
    least = "" if is_enough else f", and {_least(args)}"
    messages.say(done.verdict + least)
    for line in _summary(account):
        messages.say(line)
    if not is_enough:
        return REFUSED
    messages.wrote(args.output, done.next_step(args.output))
    return 0


def _run_committed(args: argparse.Namespace) -> int:
    from lbr2pgo.provenance.carrying import carry_committed
    from lbr2pgo.support.errors import InputError
    from lbr2pgo.support.output import refuse_overwriting

    if any((args.old, args.new, args.git, args.json)):
        raise InputError(
            "a committed profile's provenance tells its trees",
            cure="Leave out --committed, or --from, --to, --git and --json.",
        )
    refuse_overwriting([args.output], [args.profile])
    done = carry_committed(args.profile)
    is_enough = done.share >= args.min_carried
    messages.say(done.said + ("" if is_enough else f", and {_least(args)}"))
    if is_enough:
        done.write(args.output)
    return 0 if is_enough else REFUSED


def _least(args: argparse.Namespace) -> str:
    return f"--min-carried is {args.min_carried:.1%}"


def _summary(account: Account) -> Iterator[str]:
    """How much was carried in what way, and what is named."""
    total = account.total()
    for way in account.ways_of_all():
        yield f"  {total[way] / total.total():6.1%} {way.value}"
    lost = (f"{_shown(name)} {count:,}" for name, count in account.lost().items())
    names = ((_shown(old), _shown(new)) for old, new in sorted(account.renamed.items()))
    renamed = (f"{old} → {new}" for old, new in names if old != new)
    split = (
        f"{_shown(old)} → {', '.join(map(_shown, new))}"
        for old, new in sorted(account.split.items())
    )
    yield from _named("lost, most first", lost)
    yield from _named("renamed", renamed)
    yield from _named("split", split)
    yield from _named(
        "dropped, for too little of them is left", map(_shown, sorted(account.dropped))
    )
    yield from _named("not there any more", map(_shown, sorted(account.gone)))


def _shown(name: str) -> str:
    from lbr2pgo.program.demangle import short_name, without_unique_suffix

    return short_name(without_unique_suffix(name))


def _named(title: str, names: Iterable[str]) -> Iterator[str]:
    """A line that names the first ones, if there are any."""
    names = iter(names)
    first = list(islice(names, _NAMED))
    left = sum(1 for _ in names)
    if first:
        yield f"{title}: {', '.join(first)}{f' and {left:,} more' if left else ''}"
