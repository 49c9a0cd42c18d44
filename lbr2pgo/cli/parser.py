"""How the command line is read: what is said of wrong words, and what all commands take."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress

from lbr2pgo.cli import foreign
from lbr2pgo.cli.commands import COMMON, FIRST
from lbr2pgo.support.resembling import did_you_mean

TYPE_CHECKING = False  # see `lbr2pgo`

if TYPE_CHECKING:
    from typing import Any, NoReturn

    from _typeshed import SupportsWrite

_EXAMPLES = "examples:"


class _Formatter(argparse.HelpFormatter):
    """Breaks no line of the examples."""

    def __init__(self, prog: str, width: int | None = None) -> None:
        super().__init__(prog, width=width or _columns() - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith(_EXAMPLES) else super()._fill_text(text, width, indent)

    def _format_action(self, action: argparse.Action) -> str:
        """A line between the steps of the work."""
        is_command = isinstance(action, argparse._SubParsersAction._ChoicesPseudoAction)
        line = "\n" if is_command and action.dest in FIRST else ""
        return line + super()._format_action(action)


class _HelpAll(argparse.Action):
    """Prints the help with every option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        assert isinstance(parser, Parser)
        parser._print_message(super(Parser, parser).format_help())
        parser.exit()


def _columns() -> int:
    """As `shutil.get_terminal_size`, which argparse asks and which takes as long to load."""
    with suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    if sys.__stdout__ is not None:
        with suppress(ValueError, OSError):  # a closed stream, no terminal
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80
    return 80


class Parser(argparse.ArgumentParser):
    """Answers a wrong word in two lines with the word that may have been meant.

    `examples` are whole command lines; they stand at the end of the help.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        shown = "\n  ".join([_EXAMPLES, *examples]) if examples else None
        options = {"formatter_class": _Formatter, "epilog": shown, **options}
        super().__init__(*args, **options)
        self.examples = tuple(examples)
        self._words: list[str] = []
        self._name = self.prog.rpartition(" ")[2]
        self._common = COMMON.get(self._name, ())
        if self._common:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show every option")

    def format_help(self) -> str:
        """Of many options those that most people need."""
        if not self._common:
            return super().format_help()
        with self._common_only() as left_out:
            text = super().format_help()
        return f"{text}\nwith {left_out} more options: {self.prog} --help-all\n"

    @contextmanager
    def _common_only(self) -> Iterator[int]:
        """Hide all other options; gives their number."""
        shown = {"--help", *self._common}
        rare = [a for a in self._actions if a.option_strings and not shown & {*a.option_strings}]
        helps = [action.help for action in rare]
        for action in rare:
            action.help = argparse.SUPPRESS
        yield len(rare)
        for action, words in zip(rare, helps, strict=True):
            action.help = words

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse does, but the command's own parser refuses words that are not known."""
        self._words = list(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(self._words, namespace)
        if rest:
            self.error(f"{rest[0]} is not known here; {self._order(rest[0])}")
        return found, []

    def _order(self, word: str) -> str:
        """How words should stand, of which this one is not where it is understood."""
        if self._subparsers is not None:  # a command's own parser refuses what stands behind it
            return "options stand behind the command"
        is_option = word.startswith("-")
        return "see what there is" if is_option else "words without an option stand together"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            is_command = isinstance(action, argparse._SubParsersAction)
            theirs = foreign.verb(value) if is_command else foreign.choice(value)
            if theirs is not None:
                self._refuse(theirs)
            raise argparse.ArgumentError(action, unknown(value, list(action.choices)))

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Help, say; argparse takes it for written where there is no room for it."""
        print(message, end="", file=file)
        sys.stdout.flush()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where the help is; exit with 2.

        A mistyped option is the cause of whatever else is wrong.
        """
        for word in self._words:
            option, _, value = word.partition("=")
            if option == "--call-graph" and value in foreign.CALL_GRAPHS:
                message = foreign.NO_KIND
                break
            if option in self._option_string_actions:
                continue
            theirs = foreign.option(self._name, option)
            if theirs is not None:
                message = theirs
                break
            if not option.startswith("--"):
                continue
            meant = did_you_mean(option, self._option_string_actions)
            if meant:
                message = f"there is no option {option}{meant}"
                break
        self._refuse(message)

    def _refuse(self, message: str) -> NoReturn:
        print(f"{self.prog}: error: {message}\nSee `{self.prog} --help`.", file=sys.stderr)
        raise SystemExit(2)


def names(text: str) -> list[str]:
    """The values of an option that takes a list; with action="extend" it may be repeated.

    >>> names("any_call, u")
    ['any_call', 'u']
    """
    return [word for word in map(str.strip, text.split(",")) if word]


def numbers(text: str) -> list[int]:
    """The same for numbers."""
    try:
        return list(map(int, names(text)))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is no list of numbers") from None


def whole_numbers(text: str) -> tuple[int, ...]:
    """Such numbers, from 0 on, separated by commas."""
    return tuple(map(whole_number, names(text)))


def whole_number(text: str) -> int:
    """A number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 0 on")
    return int(text)


def moved_directory(text: str) -> tuple[str, str]:
    """Where a directory was and where it is now; or nothing and a directory that stayed.

    >>> moved_directory("/build/app=src"), moved_directory("src")
    (('/build/app', 'src'), ('', 'src'))
    """
    old, separator, new = text.partition("=")
    if separator and not (old and new):
        raise argparse.ArgumentTypeError(f"{text} is not of the form DIR or FROM=TO")
    return (old, new) if separator else ("", text)


def some_of(*known: str) -> Callable[[str], list[str]]:
    """The same for names of which all are known."""

    def parse(text: str) -> list[str]:
        wanted = names(text)
        for name in wanted:
            if name not in known:
                raise argparse.ArgumentTypeError(unknown(name, known))
        return wanted

    return parse


def unknown(word: str, known: Collection[str]) -> str:
    """What is said of a word that is none of the known ones."""
    return f"{word} is not known" + (
        did_you_mean(word, known) or f" (there are {', '.join(known)})"
    )


def section(parser: argparse.ArgumentParser, title: str) -> argparse._ArgumentGroup:
    """The options that answer one question, for those to come of several helpers."""
    groups = (group for group in parser._action_groups if group.title == title)
    return next(groups, None) or parser.add_argument_group(title)


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser's commands, and theirs, that have none themselves."""
    subparsers = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    for action in subparsers:
        for each in action.choices.values():
            yield from leaves(each)
    if not subparsers:
        yield parser
