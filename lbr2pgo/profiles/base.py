"""What every output format offers, and what it says of itself.

Modules of formats are read to know the options of `lbr2pgo convert`: what it takes to write or to
read is imported where it is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import Field, field, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

from lbr2pgo.model.waterfall import Step
from lbr2pgo.profiles.reader import Reader
from lbr2pgo.support.dataclass import dataclass

if TYPE_CHECKING:
    from lbr2pgo.evidence.collector import Finding
    from lbr2pgo.profiles.work import Work


@dataclass(frozen=True, slots=True)
class Written:
    """What an output says when it is written."""

    tallies: Mapping[str, int]
    """Of its steps of the waterfall."""
    notes: tuple[str, ...] = ()
    """Assumptions and damage, a sentence each."""


@dataclass(frozen=True, slots=True)
class Flag:
    """How a field of an `Output` is given on the command line."""

    word: str
    help: str


def flag(word: str, help: str) -> dict[str, Flag]:
    """Metadata of a field."""
    return {"flag": Flag(word, help)}


def shell_word(path: Path) -> str:
    """A path as it stands in a command, where it must be one word.

    >>> shell_word(Path("out/app.prof")), shell_word(Path("my profiles/app"))
    ('out/app.prof', "'my profiles/app'")
    """
    from shlex import quote

    return quote(str(path))


@dataclass(frozen=True, slots=True)
class Option:
    """A field of an `Output`: a path to be written, a choice, a number, several, or a switch."""

    name: str
    flag: Flag
    is_path: bool
    is_number: bool
    """A whole one, from 0 on."""
    is_list: bool
    """Of such numbers."""
    choices: tuple[str, ...]
    """Empty for all others."""

    @property
    def keyword(self) -> str:
        """Its name in Python and in parsed arguments, `llvm_format` say."""
        return self.flag.word.lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True)
class Output(ABC):
    """One output that is asked for. Each format has a frozen dataclass of its own.

    Fields are paths to be written, of which the first is the one that asks for the output, and
    options: `Literal` choices, numbers, tuples of these, and switches. Each field has a `flag`.
    """

    @abstractmethod
    def write(self, work: Work) -> Written:
        """Write all of it or nothing.

        Raises OutputError, with a cure, where it can't be made of this program or this recording,
        and EmptyProfileError where nothing is left to write. Other outputs are written all the
        same.
        """

    def made(self, work: Work) -> Callable[[], Written]:
        """Make it, and give what writes it, which may be called in another thread.

        That needs nothing but what was made, so that the next output is made meanwhile. Here it
        has all been done by then. Both raise what `write` raises.
        """
        said = self.write(work)
        return lambda: said

    def findings(self, work: Work) -> tuple[Finding[Any], ...]:
        """What it asks of the samples beside counts (`Work.told`)."""
        return ()

    @property
    @abstractmethod
    def next_step(self) -> str:
        """What to do with it: the words of a command that takes it."""

    @property
    def uses_probes(self) -> bool | None:
        """Whether pseudo probes are looked at where the program has them; None: it is all one."""
        return None

    @classmethod
    @cache
    def options(cls) -> tuple[Option, ...]:
        """The fields, in their order."""
        kinds = get_type_hints(cls)
        return tuple(_option(each, kinds[each.name]) for each in fields(cls))

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path that it is written to."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple(value for value in values if isinstance(value, Path))

    def words(self) -> tuple[str, ...]:
        """What asks for it on the command line."""
        found: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value not in (each.default, None):
                word = each.metadata["flag"].word
                text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
                found += [word] if value is True else [word, text]
        return tuple(found)


def _option(field: Field[Any], kind: Any) -> Option:
    kinds = (kind, *get_args(kind))
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    is_list = get_origin(kind) is tuple
    is_number = int in kinds and not is_list
    return Option(field.name, field.metadata["flag"], Path in kinds, is_number, is_list, choices)


HEAD_SIZE = 1 << 16


def readers_in(module: str, *names: str) -> Callable[[], tuple[Reader[Any], ...]]:
    """Readers by their names in a module of `profiles`, which is imported when they are called."""
    return lambda: tuple(
        getattr(import_module(f"lbr2pgo.profiles.{module}"), name) for name in names
    )


@dataclass(frozen=True, slots=True)
class Form:
    """One of the forms that a format is written in."""

    key: str
    """What its rows in fuzzing and among damaged files are called."""
    name: str
    written_as: str
    """The authority that its bytes follow."""
    read_by: str
    options: Mapping[str, object] = field(default_factory=dict)
    """Fields of the output that ask for it."""
    needs: str = ""
    """What few programs or recordings have and it can't be made without."""


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """One format that is written; `profiles.registry` lists them all."""

    name: str
    """What asks for it in Python."""
    suffix: str
    """What the name of its file ends in, where all formats are asked for at once."""
    output: type[Output]
    forms: tuple[Form, ...]
    references: tuple[str, ...]
    """Where the facts are from."""
    limitations: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    """Its part of the loss waterfall."""
    readers: Callable[[], tuple[Reader[Any], ...]] = tuple
    """None for what `sources` read, and for what is only written."""
    only_written: bytes = b""
    """How files begin that nothing of ours reads again; empty where something does."""
