"""The programs of `verdicts.py`: their sources, and what they are run with."""

from __future__ import annotations

import bz2
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from which_profile import call

HERE = Path(__file__).parent
HELD_BACK = ("interp", "lua", "yaml", "mini")
"""Programs that were looked at only when the verdict's bounds had been set."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is built, and what it is run with: to learn from, on other input, to be judged by."""

    name: str
    sources: Sequence[str]
    """Patterns below the folder of sources, or from this project's root."""
    train: str
    judged: str
    other: str = ""
    flags: str = ""
    without: Sequence[str] = ()
    """Sources that are left out: parts of their names."""
    period: int = 4001
    older: Sequence[str] = ()
    """Sources of an older version."""


LUA = f"{HERE}/programs/mix.lua"
MINI = f"{HERE.parent}/examples/interp-cmake/scripts"
PROGRAMS = (
    Program("bzip2", ("bzip2*/*.c",), "-kc one.txt", "-kc two.txt", "-dc one.bz2",
            without=("recover", "dlltest", "mk251", "spewG", "unzcrash")),
    Program("minigzip", ("zlib*/*.c", "zlib*/test/minigzip.c"), "-c one.txt", "-c two.txt",
            "-1 -c one.bz2", "-I zlib_1.2.13.dfsg -DHAVE_UNISTD_H"),
    Program("xmlwf", ("expat*/expat/lib/xml*.c", "expat*/expat/xmlwf/*.c"), "one.xml", "two.xml",
            "-n one.xml", "-I . -I expat_2.5.0/expat/lib -DXML_NS -DXML_DTD -DXML_POOR_ENTROPY "
            "-DXML_CONTEXT_BYTES=1024 -DHAVE_UNISTD_H -include unistd.h",
            ("_ns", "_impl", "win32", "readfilemap", "xmlmime", "ct.c")),
    Program("json", ("examples/json-make/src/*.c",), "one.json", "two.json", "flat.json", "-lm"),
    Program("shapes", ("testbins/src/shapes.cpp",), "20", "50"),
    Program("jsoncpp", ("libjsoncpp*/src/lib_json/*.cpp", "libjsoncpp*/src/jsontestrunner/*.cpp"),
            "two.json", "one.json", "flat.json", "-I libjsoncpp_1.9.5/include"),
    Program("interp", ("testbins/src/interp.c",), "30", "50"),
    Program("lua", ("lua5.4*/src/*.c",), f"{LUA} 3", f"{LUA} 7", "sums.lua",
            "-DLUA_USE_POSIX -lm", ("luac.c",), older=("lua5.3*/src/*.c",)),
    Program("yaml", ("libyaml*/src/*.c", "libyaml*/tests/run-parser.c"), "one.json", "two.json",
            "flat.json", "-I libyaml_0.2.5/include -DYAML_VERSION_STRING=\"\\\"\\\"\" "
            "-DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5"),
    Program("mini", ("examples/interp-cmake/src/*.cpp",), f"{MINI}/train.mini 2",
            f"{MINI}/train.mini 5", f"{MINI}/life.mini 1", "-std=c++17"),
)  # fmt: skip


def unpack() -> None:
    """The packages in this folder, each into a folder of its own."""
    for archive in Path().glob("*.orig.tar.*"):
        out = Path(archive.name.split(".orig.")[0])
        if not out.exists():
            out.mkdir()
            call("tar", "xf", archive, "-C", out, "--strip-components=1")


def make_inputs() -> None:
    """What programs are run with, in this folder, and what expat's configure would make."""
    Path("expat_config.h").touch()
    for name, pattern in (("one", "lua5.4*/src/*.c"), ("two", "zlib*/*.[ch]")):
        text = b"".join(file.read_bytes() for file in sorted(Path().glob(pattern)))
        Path(f"{name}.txt").write_bytes(text[:200_000])
    Path("one.bz2").write_bytes(bz2.compress(Path("one.txt").read_bytes()))
    Path("sums.lua").write_text("local s = 0 for i = 1, 3e6 do s = s + i % 7 end print(s)\n")
    Path("flat.json").write_text(json.dumps(list(range(100_000))))
    call(sys.executable, HERE / "programs" / "documents.py", "one.json", "two.json")
    nested, table = (json.loads(Path(f"{name}.json").read_text()) for name in ("one", "two"))
    for name, value in (("one", nested[:20]), ("two", list(table.values())[:400])):
        Path(f"{name}.json").write_text(json.dumps(value, indent=1))
        Path(f"{name}.xml").write_text(as_xml(value), encoding="utf-8")


def as_xml(value: object) -> str:
    """JSON as elements; numbers are attributes."""
    match value:
        case dict():
            parts = (f"<of key='{key}'>{as_xml(each)}</of>" for key, each in value.items())
            return f"<all>{''.join(parts)}</all>\n"
        case list():
            return f"<list n='{len(value)}'>{''.join(map(as_xml, value))}</list>"
        case str():
            return f"<text>{value}</text>"
    return f"<number is='{value}'/>"
