import contextlib
import os
import resource
import stat
import subprocess
import sys
import threading
from io import BytesIO
from pathlib import Path

import pytest

from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.output import (
    refuse_overwriting,
    refuse_unwritable,
    write_atomically,
    write_to,
)


def put(data):
    return lambda stream: stream.write(data)


def fail(stream):
    stream.write(b"half")
    raise RuntimeError("in the middle")


def run_python(code, *args, **options):
    # -B: a module that Python compiles and keeps would be the first to meet a limit or a full disk.
    command = [sys.executable, "-B", "-c", code, *args]
    return subprocess.run(command, capture_output=True, **options)


WRITE_ARGUMENT = """
import sys
from lbr2pgo.support.errors import OutputError
from lbr2pgo.support.output import write_atomically
print("before")
try:
    write_atomically(sys.argv[1], lambda stream: stream.write(b"data" * 4096))
except OutputError as error:
    print(error, file=sys.stderr)
    sys.exit(2)
print("after")
"""


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", put(b"data"))
    finally:
        os.umask(old)
    assert (tmp_path / "new").read_bytes() == b"data"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["new"]


def test_an_old_file_keeps_its_mode_and_is_not_written_in_place(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o604)
    with path.open("rb") as before:
        write_atomically(path, put(b"new"))
        assert before.read() == b"old"
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_old_file_keeps_its_owner(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    os.chown(path, 12345, 54321)
    write_atomically(path, put(b"new"))
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 54321)


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old"]


def test_a_failure_leaves_no_new_file(tmp_path):
    with pytest.raises(RuntimeError):
        write_atomically(tmp_path / "new", fail)
    assert os.listdir(tmp_path) == []


def test_an_interrupt_leaves_no_litter(tmp_path):
    def interrupt(stream):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "new", interrupt)
    assert os.listdir(tmp_path) == []


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target = tmp_path / "there" / "target"
    target.write_bytes(b"old")
    (tmp_path / "link").symlink_to("there/target")
    (tmp_path / "link2").symlink_to("link")
    write_atomically(tmp_path / "link2", put(b"new"))
    assert (tmp_path / "link2").is_symlink()
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()


def test_a_dangling_link_creates_its_target(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", put(b"new"))
    assert (tmp_path / "target").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("missing/file", "Create the directory"),
        ("file/below", "choose another path"),
        ("directory", "Is a directory"),
        ("new/", "Is a directory"),
        ("loop", "symbolic links"),
        ("x" * 300, "too long"),
        ("nul\0byte", "NUL"),
    ],
)
def test_an_impossible_path_is_an_output_error(tmp_path, path, part):
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(OutputError, match=part) as late:
        write_atomically(f"{tmp_path}/{path}", put(b"data"))
    with pytest.raises(OutputError) as early:
        refuse_unwritable([f"{tmp_path}/{path}"])
    assert str(early.value) == str(late.value)
    assert sorted(os.listdir(tmp_path)) == before


def test_a_path_that_can_be_written_stays_as_it_is(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(b"old")
    refuse_unwritable([old, new, "-", "/dev/null"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old": b"old"}


def test_an_empty_path_is_an_output_error():
    with pytest.raises(OutputError):
        write_atomically("", put(b"data"))


@contextlib.contextmanager
def as_nobody(tmp_path):
    """Act as a user without rights; `tmp_path` is reachable and keeps its own mode."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    for directory in tmp_path.parents:
        if directory.stat().st_uid == os.geteuid() and directory.name.startswith(
            ("pytest", "popen")
        ):
            directory.chmod(0o755)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_no_permission_is_an_output_error(tmp_path):
    tmp_path.chmod(0o755)
    with as_nobody(tmp_path):
        for attempt in (lambda: write_atomically(tmp_path / "new", put(b"data")),
                        lambda: refuse_unwritable([tmp_path / "new"])):  # fmt: skip
            with pytest.raises(OutputError, match="Choose a path that you may write"):
                attempt()
    assert os.listdir(tmp_path) == []


def test_a_write_protected_file_is_not_replaced(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")
    path.chmod(0o444)
    tmp_path.chmod(0o777)
    with as_nobody(tmp_path):
        with pytest.raises(OutputError, match="Permission"):
            write_atomically(path, put(b"new"))
        write_atomically(tmp_path / "another", put(b"new"))  # it is not the directory's fault
    assert path.read_bytes() == b"old"


def test_odd_bytes_in_a_path(tmp_path):
    name = os.fsdecode(b"blank newline\n\xff")
    write_atomically(tmp_path / name, put(b"data"))
    assert (tmp_path / name).read_bytes() == b"data"
    with pytest.raises(OutputError) as caught:
        write_atomically(tmp_path / name / "below", put(b"data"))
    message = str(caught.value)
    assert "\\n" in message
    assert "\\xff" in message
    assert message.isascii()


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / "old"
    path.write_bytes(b"old")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = run_python(WRITE_ARGUMENT, str(path), preexec_fn=limit)
    assert done.returncode == 2
    assert b"size limit" in done.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["old"]


def test_a_full_device_is_an_output_error():
    with pytest.raises(OutputError, match="The disk is full"):
        write_atomically("/dev/full", put(b"data" * 4096))


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_straight(tmp_path, name):
    done = run_python(WRITE_ARGUMENT, name)
    assert done.stdout == b"before\n" + b"data" * 4096 + b"after\n"

    log = tmp_path / "log"
    log.write_bytes(b"kept\n")
    with log.open("ab") as appended:
        subprocess.run([sys.executable, "-c", WRITE_ARGUMENT, name], stdout=appended, check=True)
    assert log.read_bytes() == b"kept\nbefore\n" + b"data" * 4096 + b"after\n"


def test_a_closed_pipe_is_an_output_error():
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", WRITE_ARGUMENT, f"/dev/fd/{write}"],
        pass_fds=[write],
        capture_output=True,
    )
    os.close(write)
    assert done.returncode == 2
    assert b"Broken pipe" in done.stderr


def test_a_named_pipe_is_written_straight(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, put(b"data"))
    reader.join()
    assert got == [b"data"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_error_about_another_file_is_not_blamed_on_the_output(tmp_path):
    def read_elsewhere(stream):
        (tmp_path / "input").read_bytes()

    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "new", read_elsewhere)
    assert os.listdir(tmp_path) == []


def test_writers_at_once_leave_one_whole_file(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([65 + i]) * 100_000 for i in range(8)]
    threads = [threading.Thread(target=write_atomically, args=(path, put(c))) for c in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


def test_write_to_takes_streams_and_paths(tmp_path):
    stream = BytesIO()
    write_to(stream, put(b"data"))
    assert stream.getvalue() == b"data"
    write_to(Path(tmp_path, "file"), put(b"data"))
    assert (tmp_path / "file").read_bytes() == b"data"


@pytest.mark.parametrize("kind", ["same path", "symbolic link", "hard link", "other spelling"])
def test_an_output_may_not_be_an_input_under_any_name(tmp_path, kind):
    taken = tmp_path / "taken"
    taken.write_bytes(b"input")
    path = {"same path": taken, "other spelling": tmp_path / "." / "x" / ".." / "taken"}.get(
        kind, tmp_path / "other"
    )
    if kind == "symbolic link":
        path.symlink_to(taken)
    elif kind == "hard link":
        path.hardlink_to(taken)
    with pytest.raises(OutputError, match="over an input"):
        refuse_overwriting([path], [taken])


def test_two_outputs_may_not_be_one(tmp_path):
    with pytest.raises(OutputError, match="another output"):
        refuse_overwriting([tmp_path / "new", tmp_path / "." / "new"], [])


def test_devices_take_any_number_of_outputs():
    refuse_overwriting(["/dev/null", "/dev/null"], ["/dev/null"])


@pytest.mark.parametrize("path", ["-", "/dev/stdout"])
def test_standard_output_takes_one(path):
    refuse_overwriting([path], [path])
    with pytest.raises(OutputError, match="mixed on standard output"):
        refuse_overwriting([path, "-"], [])


def test_an_end_in_the_moment_when_the_file_is_made_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def interrupted(*words):
        os.close(opened(*words))
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "x", put(b"1"))
    assert list(tmp_path.iterdir()) == []
