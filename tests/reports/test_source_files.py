"""What a page may hold of the files of the machine that it is made on."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from builders.pages import unpacked

from lbr2pgo.cli import main
from lbr2pgo.program.code.named_functions import find_function
from lbr2pgo.program.dwarf.line import NO_ORIGIN, Origin
from lbr2pgo.program.program import Program
from lbr2pgo.reports.source_files import SourceFiles

TEXT = b"int main;\n"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that holds neither the build, nor the program, nor the command."""
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "elsewhere"


def put(path: Path, content: bytes = TEXT) -> str:
    path.write_bytes(content)
    return str(path)


def origin(folder: Path, content: bytes | None = None) -> Origin:
    return Origin(str(folder), None if content is None else hashlib.md5(content).digest())


@pytest.mark.parametrize("name", ["environ", "cmdline"])
@pytest.mark.parametrize("allowed", ["/", "/proc", "/proc/self"])
def test_processes_are_never_shown(name: str, allowed: str) -> None:
    files = SourceFiles((("", allowed),), program="/proc/self/exe")
    content, wrong = files.read(f"/proc/self/{name}", Origin(allowed, None))
    assert content is None
    assert "not shown: it is in /proc, /sys or /dev" in wrong


def test_folders_that_hold_source_code(elsewhere: Path) -> None:
    path = put(elsewhere / "a.c")
    content, wrong = SourceFiles().read(path, NO_ORIGIN)
    assert content is None
    assert "outside of the folders" in wrong
    assert SourceFiles().read(path, origin(elsewhere)) == (TEXT, "")
    assert SourceFiles(program=str(elsewhere / "program")).read(path, NO_ORIGIN) == (TEXT, "")
    assert SourceFiles((("", str(elsewhere)),)).read(path, NO_ORIGIN) == (TEXT, "")
    os.chdir(elsewhere)
    assert SourceFiles().read(path, NO_ORIGIN) == (TEXT, "")
    assert SourceFiles().read("a.c", NO_ORIGIN) == (TEXT, "")


def test_headers_of_the_system(elsewhere: Path) -> None:
    content, wrong = SourceFiles().read("/usr/include/stdio.h", NO_ORIGIN)
    assert content is not None
    assert wrong == ""


@pytest.mark.parametrize("wide", ["/", "/etc"])
def test_a_program_that_says_it_was_built_where_secrets_are(elsewhere: Path, wide: str) -> None:
    content, wrong = SourceFiles().read("/etc/passwd", Origin(wide, None))
    assert content is None
    assert "is not shown" in wrong


@pytest.mark.parametrize("name", [".netrc", "id_rsa", "settings.json", ".env", "key.pem"])
def test_what_is_not_called_like_source_code(elsewhere: Path, name: str) -> None:
    path = put(elsewhere / name)
    content, wrong = SourceFiles().read(path, origin(elsewhere))
    assert content is None
    assert "not called like source code; --source-dir" in wrong
    assert SourceFiles((("", str(elsewhere)),)).read(path, NO_ORIGIN) == (TEXT, "")
    # Who knows its MD5 has seen it.
    assert SourceFiles().read(path, origin(elsewhere, TEXT)) == (TEXT, "")


def test_links_are_resolved_before_a_file_is_judged(elsewhere: Path) -> None:
    path = put(elsewhere / "a.c")
    Path("link.c").symlink_to(path)
    Path("links").symlink_to(elsewhere)
    for each in ("link.c", "links/a.c", "../elsewhere/a.c"):
        assert "outside of the folders" in SourceFiles().read(each, NO_ORIGIN)[1]
    assert SourceFiles((("", "links"),)).read(path, NO_ORIGIN) == (TEXT, "")
    assert SourceFiles((("/was", "."),)).read("/was/../elsewhere/a.c", NO_ORIGIN)[0] is None


def test_what_is_no_text(elsewhere: Path) -> None:
    for content in (b"\x7fELF\2\1\1\0", b"int\0main", b"\x01\x02"):
        put(Path("a.c"), content)
        assert "it is no text" in SourceFiles().read("a.c", NO_ORIGIN)[1]
    for content in (b"caf\xe9\r\n\f", "größer\n".encode(), b"\x1b\x1a"):
        put(Path("a.c"), content)
        assert SourceFiles().read("a.c", NO_ORIGIN) == (content, "")


def test_what_is_large_or_no_file(elsewhere: Path) -> None:
    with open("a.c", "wb") as stream:
        stream.truncate((16 << 20) + 1)
    assert "it is larger than 16 MB" in SourceFiles().read("a.c", NO_ORIGIN)[1]
    os.mkfifo("b.c")
    assert "it is no regular file" in SourceFiles().read("b.c", NO_ORIGIN)[1]


def test_a_file_that_changed(elsewhere: Path) -> None:
    path, was = put(Path("a.c")), origin(elsewhere, b"int main(void);")
    content, wrong = SourceFiles().read(path, was)
    assert content is None
    assert "--changed-source" in wrong
    content, wrong = SourceFiles(shows_changed=True).read(path, was)
    assert content == TEXT
    assert "lines may stand beside figures of others" in wrong


def test_what_is_wrong_is_said_once(elsewhere: Path) -> None:
    files = SourceFiles()
    assert [bool(files.read(name, NO_ORIGIN)[1]) for name in ("a", "b", "a")] == [True, True, False]


def test_paths_of_any_kind_are_no_trouble(tmp_path: Path) -> None:
    files = SourceFiles((("/gone", str(tmp_path)),), build_id="00ff")
    (tmp_path / "round").symlink_to("round")
    round_ = str(tmp_path / "round")
    for path in ("", "/", "\0", "../../etc", "x" * 5000, "/gone/../../\0", str(tmp_path), round_):
        assert files.read(path, Origin("\0", None))[0] is None


def test_a_file_below_a_moved_directory(elsewhere: Path) -> None:
    put(elsewhere / "a.c")
    assert SourceFiles((("/was", str(elsewhere)),)).read("/was/a.c", NO_ORIGIN)[0] == TEXT
    assert SourceFiles((("/was/", str(elsewhere)),)).read("/was/a.c", NO_ORIGIN)[0] == TEXT
    assert SourceFiles((("/wa", str(elsewhere)),)).read("/was/a.c", NO_ORIGIN)[0] is None
    assert SourceFiles((("", str(elsewhere)),)).read("./a.c", NO_ORIGIN)[0] == TEXT


@pytest.mark.parametrize("name", ["source#was#a.c", "source-12ab-#was#a.c"])
def test_a_file_that_debuginfod_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path))
    (tmp_path / "00ff").mkdir()
    put(tmp_path / "00ff" / name)
    assert SourceFiles(build_id="00ff").read("/was/a.c", NO_ORIGIN)[0] == TEXT
    assert SourceFiles(build_id="00fe").read("/was/a.c", NO_ORIGIN)[0] is None


def test_no_page_shows_what_a_program_was_made_to_name(elsewhere: Path) -> None:
    secret = put(elsewhere / "secret.c", b"hunter2\n" * 9)
    Path("a.c").write_text(
        f"""
        #line 1 "{secret}"
        int volatile sink;
        int main(void) {{ for (int i = 0; i < 9; i++)
        #line 1 "/proc/self/environ"
            sink += i;
        return 0; }}
        """.replace("        #", "#")
    )
    subprocess.run(["gcc", "-g", "-O0", "-o", "program", "a.c"], check=True)
    program = Program.open(Path("program"))
    start = int(program.regions.start[find_function(program, "main")])
    Path("traces").write_text(f"T {start:x} {start:x} {start + 4:x} 9\n")
    words = ["report", "traces", "--binary", "program", "--html", "page.html"]
    assert main(words) == 0
    page = unpacked(Path("page.html").read_text())
    assert "secret.c is not shown: it is outside of the folders" in page
    assert "hunter2" not in page
    assert main([*words, "--source-dir", str(elsewhere)]) == 0
    assert "hunter2" in unpacked(Path("page.html").read_text())
