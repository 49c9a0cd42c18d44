"""Source files of a tree: of a directory, or of a revision in a Git repository."""

from __future__ import annotations

import os
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path, PurePosixPath

from lbr2pgo.profiles.carried.outline import SUFFIXES, Definition, definitions
from lbr2pgo.support.errors import InputError, MissingToolError, readable


class SourceTree:
    """The functions of the source files of a tree."""

    def __init__(self, files: Mapping[str, bytes], name: str) -> None:
        """Of files by their paths in the tree, which is called `name` in messages."""
        self.files, self.name = files, name
        self._outlines: dict[str, list[Definition]] = {}

    @classmethod
    def of_directory(cls, root: Path) -> SourceTree:
        """Raises InputError where it is none, or can't be read."""
        if not root.is_dir():
            cure = "Name the directory that the source files lie in."
            raise InputError("is no directory", where=str(root), cure=cure)
        with readable(root):
            files = {path.relative_to(root).as_posix(): path.read_bytes() for path in _in(root)}
        return cls(files, str(root))

    @classmethod
    def of_working_tree(cls, root: Path) -> SourceTree:
        """Of the files in a repository that git knows, or would: none that a build has made."""
        words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True)
        names = (os.fsdecode(name) for name in done.stdout.split(b"\0"))
        paths = (root / name for name in names if PurePosixPath(name).suffix.lower() in SUFFIXES)
        files = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in paths
            if path.is_file() and not path.is_symlink()
        }
        return cls(files, str(root))

    @classmethod
    def of_revision(cls, repository: Path, revision: str) -> SourceTree:
        """Of a commit, a tag or a branch; raises InputError where there is none of this name."""
        cure = "Name a revision of the repository in this directory."
        if revision.startswith("-"):
            raise InputError("is no revision", where=revision, cure=cure)
        command = ["git", "-C", str(repository), "archive", "--format=tar", revision, "--"]
        try:
            done = subprocess.run(command, capture_output=True, check=True)
        except FileNotFoundError:
            raise MissingToolError("git is not installed", cure="Install it.") from None
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode("utf-8", "backslashreplace").strip().removeprefix("fatal: ")
            raise InputError(f"git: {said}", where=revision, cure=cure) from None
        return cls(dict(_in_archive(done.stdout)), revision)

    def outline(self, file: str) -> Sequence[Definition]:
        """The functions of a file."""
        if file not in self._outlines:
            text = self.files[file].decode("utf-8", "surrogateescape")
            self._outlines[file] = list(definitions(text, file))
        return self._outlines[file]

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Definition]]:
        """All functions of each name."""
        found: dict[str, list[Definition]] = defaultdict(list)
        for file in self.files:
            for each in self.outline(file):
                found[each.name].append(each)
        return found


def two_trees(
    old: Path | None, new: Path | None, span: str | None
) -> tuple[SourceTree, SourceTree]:
    """Both directories; or both ends of a span in the repository here (`REV..REV`; `REV`: to now).

    Raises InputError where they are not named, or named twice.
    """
    if span and old is None and new is None:
        here = Path()
        first, dots, last = span.partition("..")
        earlier = SourceTree.of_revision(here, first or "HEAD")
        if not dots:
            return earlier, SourceTree.of_directory(here)
        return earlier, SourceTree.of_revision(here, last or "HEAD")
    if not span and old is not None and new is not None:
        return SourceTree.of_directory(old), SourceTree.of_directory(new)
    raise InputError(
        "it takes two source trees, the one that the profile is of and the new one",
        cure="Name them: --from DIR --to DIR, or --git REV..REV.",
    )


def _in(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.suffix.lower() in SUFFIXES and ".git" not in path.parts and path.is_file():
            yield path


def _in_archive(archive: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=BytesIO(archive)) as members:
        for member in members:
            is_source = PurePosixPath(member.name).suffix.lower() in SUFFIXES
            # What a symbolic link leads to has its own name, or is not in the archive.
            if (
                is_source
                and member.isfile()
                and (stream := members.extractfile(member)) is not None
            ):
                yield member.name, stream.read()
