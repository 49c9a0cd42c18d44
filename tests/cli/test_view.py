from __future__ import annotations

import base64
import json
import os
import pty
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
import webbrowser
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlparse

import pytest
from builders.pages import unpacked
from builders.recordings import PIE, RECORDING

from lbr2pgo.cli import main, view
from lbr2pgo.support.errors import OutputError

WORDS = ["view", str(RECORDING), "--binary", str(PIE)]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a browser was told to open."""
    urls: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: urls.append(url) or True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return urls


def test_the_page_is_opened_and_stays(opened: list[str], tmp_path: Path) -> None:
    assert main(WORDS) == 0
    (url,) = opened
    path = Path(urlparse(url).path)
    assert path.is_relative_to(tmp_path)
    assert "<h2" in path.read_text()
    assert path.parent.stat().st_mode & 0o077 == 0


def test_without_a_browser_it_says_where_the_page_is(
    opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert main(WORDS) == 0
    said = capsys.readouterr().err
    assert "report.html" in said
    assert "--serve" in said


def test_in_a_terminal_it_is_walked_through() -> None:
    pytest.importorskip("textual", reason="textual is not installed")
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "lbr2pgo", *WORDS, "--terminal"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    shown = b""
    with subprocess.Popen(words, env=environment, **streams) as command:
        os.close(theirs)
        late = threading.Timer(120, command.kill)
        late.start()
        with suppress(OSError):  # how a terminal's end shows that nobody is there
            while part := os.read(ours, 4096):
                if b"h: keys" in shown + part and b"h: keys" not in shown:
                    os.write(ours, b"q")
                shown += part
        late.cancel()
    os.close(ours)
    assert command.returncode == 0
    assert b"interp.pie ran" in shown


def test_without_a_terminal_there_is_nothing_to_walk_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("textual", reason="textual is not installed")
    assert main([*WORDS, "--terminal"]) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_what_walks_there_is_an_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    assert main([*WORDS, "--terminal"]) == 2
    said = capsys.readouterr().err
    assert "textual, which is not installed" in said
    assert "pip install 'lbr2pgo[terminal]'" in said


def test_the_page_is_that_of_report(opened: list[str], tmp_path: Path) -> None:
    main(WORDS)
    page = tmp_path / "page.html"
    assert main(["report", *WORDS[1:], "--html", str(page)]) == 0
    assert Path(urlparse(opened[0]).path).read_text() == page.read_text()


@pytest.fixture
def server() -> Iterator[int]:
    with view.serving("<p>the page</p>", 0) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.server_port
        made.shutdown()
        thread.join()


def ask(port: int, path: str = "/", host: str | None = None) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if host is not None:
        request.add_header("Host", host)
    with urllib.request.urlopen(request, timeout=5) as answer:
        text: str = answer.read().decode()
        return text


def test_one_page_is_served(server: int) -> None:
    assert ask(server) == "<p>the page</p>"


@pytest.mark.parametrize(("path", "host"), [("/etc/passwd", None), ("/", "evil.example:80")])
def test_nothing_else_is_served_to_nobody_else(server: int, path: str, host: str | None) -> None:
    with pytest.raises(urllib.error.HTTPError):
        ask(server, path, host)


def test_a_served_page_has_the_code_of_all_functions() -> None:
    words = [sys.executable, "-m", "lbr2pgo", *WORDS, "--no-libraries", "--functions", "1"]
    with subprocess.Popen([*words, "--serve", "0"], stderr=subprocess.PIPE, text=True) as command:
        try:
            assert command.stderr is not None
            said = next(line for line in command.stderr if "serving" in line)
            port = int(said.partition("127.0.0.1:")[2].partition("/")[0])
            page = unpacked(ask(port))
            first, second = re.findall(r'"pieces":\[\[\["(\w+)",\d+\]\],\[\["(\w+)"', page)[0]
            assert f'id="f-{first}"' in page
            assert f'id="f-{second}"' not in page
            code = json.loads(zlib.decompress(base64.b64decode(ask(port, f"/f-{second}"))))
            assert code["start"] == second
            for nowhere in ("/f-7", "/f-", f"/f-{second}/", f"/f-{int(second, 16) + 1:x}"):
                with pytest.raises(urllib.error.HTTPError):
                    ask(port, nowhere)
        finally:
            command.kill()


@pytest.mark.parametrize("port", [70_000, 10**9])
def test_a_port_that_cannot_be_had(port: int) -> None:
    with pytest.raises(OutputError, match=str(port)), view.serving("", port):
        pass


def test_a_port_that_is_taken(server: int) -> None:
    with pytest.raises(OutputError, match="Name another"), view.serving("", server):
        pass


def test_bad_input_is_an_error_and_opens_nothing(opened: list[str]) -> None:
    assert main(["view", "/nowhere"]) == 2
    assert opened == []
