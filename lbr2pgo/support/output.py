"""Output files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from lbr2pgo.support.errors import OutputError

PathLike = str | os.PathLike[str]
Writer = Callable[[BinaryIO], None]

_OWN_STREAM = re.compile(r"/dev/(?:std(in|out|err)|fd/([0-9]+))|/proc/self/fd/([0-9]+)")
_STREAMS = ("in", "out", "err")

_UNFINISHED = ".lbr2pgo-"  # how the names of unfinished files begin

_CURES = {
    errno.ENOENT: "Create the directory first, or choose another path.",
    errno.ENOTDIR: "A part of the path is a file: choose another path.",
    errno.EACCES: "Choose a path that you may write, or change the permissions.",
    errno.EPERM: "Choose a path that you may write, or change the permissions.",
    errno.EROFS: "The file system is read-only: choose another path.",
    errno.ENOSPC: "The disk is full: free some space, or choose another path.",
    errno.EDQUOT: "Your disk quota is used up: free some space, or choose another path.",
    errno.EFBIG: "The file would exceed a size limit (ulimit -f): raise it.",
    errno.EPIPE: "The program that reads the pipe has ended.",
    errno.EBADF: "The stream is closed: open it, or choose a path.",
}


def write_to(destination: PathLike | BinaryIO, writer: Writer) -> None:
    """Let `writer` write to a binary stream as it is, or to a path by `write_atomically`."""
    if isinstance(destination, str | os.PathLike):
        write_atomically(destination, writer)
    else:
        writer(destination)


def write_pieces(destination: PathLike | BinaryIO, pieces: Iterable[bytes | memoryview]) -> None:
    """Write some bytes, one piece behind the other, as `write_to` does."""
    write_to(destination, lambda stream: stream.writelines(pieces))


def write_atomically(path: PathLike, writer: Writer) -> None:
    """Put what `writer` writes at `path`: all of it, or nothing.

    A regular file is written beside its place and renamed over it when it is complete, so a
    failure leaves the old file whole. It keeps its mode and, where possible, its owner; a new one
    gets those of any new file. A symbolic link stays and its target is replaced. Standard output
    (`-`, `/dev/stdout`), pipes and devices are written straight.

    Raises OutputError, with a cure, where the path can't be written. What `writer` itself raises
    passes through, after the unfinished file is gone.
    """
    name = os.fspath(path)
    with _explained(name):
        descriptor = _own_stream(name)
        if descriptor is not None:
            _write_stream(descriptor, writer)
        elif _is_special(name):
            with open(name, "wb") as stream:
                writer(stream)
        else:
            _replace(os.path.realpath(name), writer)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what goes wrong with a path into an OutputError."""
    try:
        yield
    except ValueError as error:
        if "\0" not in name:  # what Python says of it differs by version
            raise
        raise OutputError("a path can't hold a NUL byte", where=_shown(name)) from error
    except OSError as error:
        if _is_foreign(error, name):
            raise
        raise _failure(name, error) from error


def refuse_unwritable(outputs: Iterable[PathLike]) -> None:
    """Raise OutputError as `write_atomically` would, before the work whose result it may be."""
    for name in [os.fspath(path) for path in outputs]:
        with _explained(name):
            if _own_stream(name) is None and not _is_special(name):
                target = os.path.realpath(name)
                _old_file(target)
                with _unfinished(target):
                    pass


def refuse_overwriting(outputs: Iterable[PathLike], inputs: Iterable[PathLike]) -> None:
    """Raise OutputError if an output would replace an input, a program or another output.

    Hard links and symbolic links are the files that they stand for. Devices and pipes take any
    number of outputs; standard output takes one, which may stand beside standard input (`-`).
    """
    outputs = list(outputs)
    if sum(map(is_standard_output, outputs)) > 1:
        raise OutputError(
            "two outputs would be mixed on standard output",
            cure="Give every output a path of its own.",
        )
    taken = {identity for path in inputs for identity in _identities(path)}
    for path in outputs:
        mine = _identities(path)
        if mine & taken:
            raise OutputError(
                "would be written over an input, a program that runs, or another output",
                where=_shown(os.fspath(path)),
                cure="Give every output a path of its own.",
            )
        taken |= mine


def _identities(path: PathLike) -> set[object]:
    """What a path shares with every other path of the same regular file, now or once written."""
    name = os.fspath(path)
    if _own_stream(name) is not None:
        return set()
    place = os.path.realpath(name)
    try:
        found = os.stat(place)
    except (OSError, ValueError):  # not there yet
        return {place}
    is_file = stat.S_ISREG(found.st_mode)
    return {place, (found.st_dev, found.st_ino)} if is_file else set()


def is_standard_output(path: PathLike) -> bool:
    """Whether `write_atomically` would write to standard output."""
    return _own_stream(os.fspath(path)) == 1


def may_wait_for_reader(path: PathLike) -> bool:
    """Whether it is no file that `write_atomically` would write, but a stream, pipe or device."""
    name = os.fspath(path)
    return _own_stream(name) is not None or (os.path.exists(name) and not os.path.isfile(name))


def _own_stream(name: str) -> int | None:
    """Descriptor of this process that `name` means, which may be half written already."""
    if name == "-":
        return 1
    match = _OWN_STREAM.fullmatch(name)
    if match is None:
        return None
    standard, *numbers = match.groups()
    return _STREAMS.index(standard) if standard else int(numbers[0] or numbers[1])


def _write_stream(descriptor: int, writer: Writer) -> None:
    if sys.stdout is not None:
        sys.stdout.flush()  # so that what was printed before stands before
    with open(os.dup(descriptor), "wb") as stream:
        writer(stream)


def _is_special(name: str) -> bool:
    """Whether `name` is there and is no regular file."""
    if not os.path.basename(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return not stat.S_ISREG(mode)


def _replace(target: str, writer: Writer) -> None:
    old = _old_file(target)
    with _unfinished(target) as (beside, stream):
        if old is not None:
            _take_over(stream.fileno(), old)
        writer(stream)
        stream.flush()
        os.fsync(stream.fileno())
        os.replace(beside, target)


@contextmanager
def _unfinished(target: str) -> Iterator[tuple[str, BinaryIO]]:
    """A new file beside another, which is gone afterwards unless it got another name."""
    beside = os.path.join(os.path.dirname(target), _UNFINISHED + os.urandom(8).hex())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:  # from here on: a signal may end us when the file is made, and its number not yet known
        descriptor = os.open(beside, flags, 0o666)  # less the umask, as any new file
        with open(descriptor, "wb") as stream:
            yield beside, stream
    finally:
        with suppress(OSError):  # it got its other name, or none could be made
            os.unlink(beside)


def _old_file(target: str) -> os.stat_result | None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return None
    if not os.access(target, os.W_OK, effective_ids=True):  # a rename would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), target)
    return old


def _take_over(descriptor: int, old: os.stat_result) -> None:
    """Give the new file the old one's owner, where this user may, and its mode."""
    mode = stat.S_IMODE(old.st_mode)
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            mode &= 0o777  # set-user-id was meant for the old owner
    os.fchmod(descriptor, mode)


def _is_foreign(error: OSError, name: str) -> bool:
    """Whether the error names another file, which `writer` was reading, say."""
    if error.filename is None:
        return False
    about = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    ours = os.path.basename(about).startswith(_UNFINISHED)
    return not ours and about not in (name, os.path.realpath(name))


def _failure(name: str, error: OSError) -> OutputError:
    why = os.strerror(error.errno) if error.errno else str(error)
    cure = _CURES.get(error.errno or 0, "Choose another path.")
    return OutputError(f"can't be written: {why}", where=_shown(name), cure=cure)


def _shown(name: str) -> str:
    """A path as a message may print it: on one line, any byte."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
