"""Programs that nobody had looked at before: the third group of `fresh.py`, and the rule for it.

Debian 12's source packages of main are in the order of how many others depend on what they build
(Depends and Pre-Depends of its binary packages), which tells popularity without the archive's
survey of users. From where the set before (`programs_met4.py`) ended, which is pixman with 32 in C
and ANN with 3 in C++, the next four in C and the next four in C++ are taken that

* are named by no text of this project and none of its history,
* do work on data they are given, and are no interface to a system, network, screen or database,
* can be built without any library but the language's own,
* are built from at most 120 source files that are written by hand in C or C++, without a configure
  step but for headers of a few lines,
* can do seconds of work by a command of their own, or by a driver of a few lines, on input from
  other packages or made by chance, with one thread and no instructions chosen at run time,
* do the same in each run, and are of a domain that none before is of.

So these are in C GNU Libidn (29 depend on it; names of hosts in any language), gnuplot (28; plots),
dctrl-tools (14; queries of records) and http-parser (14; messages of HTTP), and in C++ libebml (3;
trees of elements in bytes), libGDSII (3; layouts of chips), OpenH264 (3; video: its encoder,
without its SIMD) and dxflib (2; drawings). The rule was not changed. All this was written down,
with what they train on and are judged by, before the first was profiled.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fresh_programs import Group, Package, Program, inputs, listed
from programs_met2 import scene

PACKAGES = (
    Package("libidn", "1.41-1",
            "884d706364b81abdd17bee9686d8ff2ae7431c5a14651047c68adf8b31fd8945", "apt"),
    Package("gnuplot", "5.4.4+dfsg1-2",
            "53af9bba3dc5344df2a746abf8c93e014403897304a385e720c3df9e3731b593", "apt"),
    Package("dctrl-tools", "2.24-3",
            "949653246a777e5e5835dd490003c72573cee45184e82369fba2fdd037af15d1", "apt"),
    Package("http-parser", "2.9.4-5",
            "467b9e30fd0979ee301065e70f637d525c28193449e1b13fbcb1b1fab3ad224f", "apt"),
    Package("libebml", "1.4.4-1+deb12u1",
            "82dc5f83356cc9340aee76ed7512210b3a4edf5f346bc9c2c7044f55052687a7", "apt"),
    Package("libgdsii", "0.2+ds.1-1",
            "f9068ae4c6627467a20fe5dc730165596349a5b3fc7a85d8ff31575f79156c36", "apt"),
    Package("openh264", "2.3.1+dfsg-3+deb12u2",
            "87124d0eb5d86ea78c59bab916ecdc3d9dfa752ce6bf73a609bbb98db7d96383", "apt"),
    Package("dxflib", "3.26.4-1",
            "e7208c9b67f5bc6727a0e3adf2162d8e67d80e0244dcda167fb7535556d944a1", "apt"),
    # Only inputs are from these.
    *inputs("shared-mime-info", "world-countries"),
)  # fmt: skip

_NAMES = (
    "idn-free idna nfkc pr29 profiles punycode rfc3454 strerror-idna strerror-pr29 "
    "strerror-punycode strerror-stringprep strerror-tld stringprep tld tlds toutf8 gl/c-ctype "
    "gl/c-strcasecmp gl/c-strncasecmp gl/unistr/u8-check gl/unistr/u8-mbtoucr "
    "gl/unistr/u8-uctomb gl/unistr/u8-uctomb-aux"
)
_PLOTS = (
    "alloc axis bitmap boundary breaders color command contour datablock datafile dynarray "
    "encoding eval external fit gadgets getcolor graph3d graphics help hidden3d history internal "
    "interpol jitter libcerf matrix misc mouse multiplot parse plot plot2d plot3d pm3d readline "
    "save scanner set show specfun standard stats stdfn tables tabulate term time unset util "
    "util3d variable version voxelgrid vplot"
)
_NOWHERE = " ".join(
    f"-D{name}='\"\"'"
    for name in (
        "CONTACT",
        "HELPFILE",
        *(f"GNUPLOT_{part}_DIR" for part in ("JS", "LUA", "PS", "SHARE")),
    )
)
_PO = "$S/shared-mime-info/po"
_DRAWN = "$S/dxflib/examples"
_VIDEO = "common/src encoder/core/src processing/src/*"
PROGRAMS = (
    Program(
        "libidn", listed("libidn/lib", _NAMES),
        ["12 Nameprep 0 0 ../hosts1.txt", f"4 Nodeprep 1 0 {_PO}/{{cs,de,el,ru}}.po"],
        ["12 Resourceprep 2 0 ../hosts2.txt", f"5 SASLprep 1 1 {_PO}/{{ar,he,hi,ko,vi}}.po",
         "10 - 0 0 ../hosts3.txt"],
        "domains.c", "-DHAVE_CONFIG_H -DLIBIDN_BUILDING -I $D/libidn -I $S/libidn/lib "
        "-I $S/libidn/lib/gl",
    ),
    Program(
        "gnuplot", listed("gnuplot/src", _PLOTS),
        ["-d -e 'set term svg; set samples 16000; set grid; plot [-12:12] for [n=1:12] "
         "besj0(x*n/4)*exp(-x*x/90), sin(x)/x with points'",
         "-d -e 'set term svg; set hidden3d; set isosamples 110; set contour; "
         "splot [-3:3][-3:3] x*x*exp(-x*x)*exp(-y*y) with lines'"],
        ["-d -e 'set term pbm color size 1200,900; set isosamples 600; set samples 700; "
         "set pm3d map interpolate 2,2; splot sin(x)*cos(y)+x*y/50'",
         "-d -e 'set term dumb; set fit quiet; set fit nolog; f(x)=a*x+b+c*sin(x/d); "
         "a=1; b=1; c=1; d=100; fit f(x) \"../measured1.txt\" using 0:3 via a,b,c,d; set table; "
         "plot \"../measured1.txt\" using 6 smooth kdensity, \"\" using 6:(f(column(3))) bins=50'",
         "-d -e 'set term svg; set xdata time; set timefmt \"%Y-%m-%d %H:%M\"; "
         "set format x \"%b %Y\"; plot \"../measured2.txt\" using 1:3:4:5:3 with candlesticks, "
         "\"\" using 1:3 smooth csplines'"],
        flags=f"-DHAVE_CONFIG_H {_NOWHERE} -I $D/gnuplot -I $S/gnuplot/src -I $S/gnuplot/term",
    ),
    Program(
        "dctrl-tools", ["dctrl-tools/lib/*.c", "dctrl-tools/grep-dctrl/*.c"],
        [f"-F Depends -e 'lib[a-m][a-z]+[0-9] \\(>= [2-9]' -s Package,Version "
         f"{'../records1.txt ' * 8}",
         f"-P -e '^lib[klm]' -o -S -i -r 'RI.*mi' -n -s Source:Package {'../records1.txt ' * 4}"],
        ["-F Version --ge 1:2.0-1 -a -F Installed-Size --lt 500 -s Package,Section:Priority "
         f"{'../records2.txt ' * 8}",
         "-c -F Description,Tag -i -r 'mi[aeiou]*no' -a --not -F Depends -w libto3 "
         "../records3.txt ../records3.txt ../records3.txt",
         f"-v -X -F Section net -o -F Maintainer Ka -dn -s Package {'../records2.txt ' * 8}"],
        flags="-std=gnu99 -D_GNU_SOURCE -DENABLE_L_DEBUG -DSYSCONF='\"/etc\"' "
        "-DPACKAGE='\"dctrl-tools\"' -DVERSION='\"2.24\"' -DMAINTAINER='\"\"' "
        "-I $S/dctrl-tools/lib",
    ),
    Program(
        "http-parser", ["http-parser/http_parser.c"],
        ["120 1400 q 0 ../requests1.http", "60 100 s 0 ../responses1.http"],
        ["140 16000 b 1 ../requests2.http", "100 65536 s 0 ../responses2.http",
         "35 7 q 0 ../requests3.http"],
        "messages.c", "-I $S/http-parser",
    ),
    Program(
        "libebml", ["libebml/src/*.cpp"],
        ["1 120 4000 uifs 20 0 0", "2 20 4000 uisdbnn 20 1 0"],
        ["3 200 2000 stvbx 200 0 1", "4 80 4000 nnu 5 0 0", "5 70 400 tdbn 2000 1 0"],
        "elements.cc", "-I $D/libebml -I $S/libebml",
    ),
    Program(
        "libgdsii", ["libgdsii/lib/*.cc"],
        ["2 -1 20 0 ../layout1.gds", "5 -1 2 1 ../layout2.gds"],
        ["1 -1 0 0 ../layout3.gds", "1 -1 12 0 ../layout4.gds", "5 3 5 1 ../layout5.gds"],
        "layouts.cc", "-I $S/libgdsii/lib",
    ),
    Program(
        "openh264", ["openh264/codec/encoder/plus/src/welsEncoderExt.cpp",
                     *(f"openh264/codec/{part}/*.cpp" for part in _VIDEO.split())],
        ["120 320 240 0 28 0 1 0 0 3 6 ../scene1.ppm",
         "60 320 240 0 0 400 2 1 1 1 9 ../scene2.ppm"],
        ["180 320 240 1 0 600 2 0 1 2 0 ../scene3.ppm",
         "60 640 352 0 0 900 3 1 2 1 12 ../scene4.ppm",
         "30 640 352 0 20 0 1 0 2 20 30 ../scene5.ppm"],
        "video.cc", "-I $D -I $S/openh264/codec/api/wels -I $S/openh264/codec/common/inc "
        "-I $S/openh264/codec/encoder/core/inc -I $S/openh264/codec/encoder/plus/inc "
        "-I $S/openh264/codec/processing/interface -I $S/openh264/codec/processing/src/common",
    ),
    Program(
        "dxflib", ["dxflib/src/*.cpp"],
        [f"20 2000 {_DRAWN}/readwrite/demo.dxf", "2 0 ../drawing1.dxf"],
        ["1 12 ../drawing2.dxf", "3 0 ../drawing3.dxf", "2 2000 ../drawing4.dxf"],
        "drawings.cc", "-I $S/dxflib/src",
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder."""
    for name, make, sizes in TEXTS:
        for seed, size in enumerate(sizes, 1):
            Path(name.format(seed)).write_text("".join(make(seed, *size)), newline="")
    for seed, parts in enumerate(LAYOUTS, 1):
        Path(f"layout{seed}.gds").write_bytes(b"".join(layout(seed, *parts)))
    for seed, (width, height) in enumerate(SCENES, 1):
        Path(f"scene{seed}.ppm").write_bytes(scene(seed, width, height))


LAYOUTS = ((40, 60, 12, 4), (150, 20, 6, 2), (16, 30, 6, 8), (30, 300, 60, 2), (400, 12, 5, 3))
"""How many cells, of how many shapes, of how many corners, in how large arrays."""
SCENES = ((640, 480), (400, 300), (800, 600), (900, 500), (1000, 700))
"""How wide and high."""
SCRIPTS = {
    "latin": "az", "greek": "αω", "cyrillic": "ая", "hebrew": "את", "arabic": "ني",
    "kanji": "一龠", "kana": "ぁん", "hangul": "가힣", "wide": "\uff21\uff5a",
}  # fmt: skip
"""The first and last letter of each."""
ACCENTED = "ÄÖÜäöüßéèêçñåøæłśżčřőğıŠŽ"
COUNTRIES = "at", "cat", "ch", "com", "de", "dk", "fr", "gr", "il", "jp", "kr", "no", "pl", "se"


def hosts(seed: int, number: int, *scripts: str) -> Iterator[str]:
    """Names of hosts in these scripts, some in capitals, with accents, or with an odd sign."""
    chance = random.Random(seed)
    for _ in range(number):
        labels = []
        for _ in range(chance.randint(1, 3)):
            label = _letters(chance, SCRIPTS[chance.choice(scripts)], chance.randint(2, 12))
            for _ in range(chance.choice((0, 0, 1, 3))):
                at = chance.randint(1, len(label))
                label = (
                    label[:at] + chance.choice((*ACCENTED, "-", "-", "7", "\u0301")) + label[at:]
                )
            labels.append(label.upper() if chance.random() < 0.2 else label)
        if chance.random() < 0.3:
            labels.insert(0, "www")
        yield f"{chance.choice('..。').join(labels)}.{chance.choice(COUNTRIES)}\n"


def _letters(chance: random.Random, ends: str, number: int) -> str:
    first, last = map(ord, ends)
    return "".join(chr(chance.randint(first, last)) for _ in range(number))


SYLLABLES = [first + last for first in "bdfklmnprst" for last in ("a", "e", "i", "o", "ur", "an")]
SECTIONS = "admin", "doc", "games", "libs", "net", "python", "science", "text", "utils", "web"


def _word(chance: random.Random, most: int = 4) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randint(1, most)))


def records(seed: int, number: int) -> Iterator[str]:
    """What Debian tells of its packages, of names that are made up."""
    chance = random.Random(seed)
    for _ in range(number):
        name, kind = _word(chance), chance.choice(("lib{}3", "{}", "{}-doc", "python3-{}"))
        yield f"Package: {kind.format(name)}\n"
        if chance.random() < 0.5:
            yield f"Source: {name}\n"
        yield f"Version: {_version(chance)}\nInstalled-Size: {int(chance.expovariate(1e-3))}\n"
        yield f"Maintainer: {_word(chance).title()} {_word(chance).title()} <{name}@example.org>\n"
        needed = (f"lib{_word(chance, 2)}{chance.randint(1, 9)} (>= {_version(chance)})"
                  for _ in range(chance.randint(0, 12)))  # fmt: skip
        yield f"Architecture: {chance.choice(('all', 'amd64', 'arm64'))}\n"
        yield f"Depends: libc6 (>= 2.{chance.randint(4, 36)}), {', '.join(needed)}\n"
        yield f"Description: {' '.join(_word(chance) for _ in range(chance.randint(3, 8)))}\n"
        for _ in range(chance.randint(0, 12)):
            yield f" {' '.join(_word(chance) for _ in range(chance.randint(1, 14)))}\n"
        if chance.random() < 0.3:
            yield f"Tag: role::{_word(chance, 1)}, use::{_word(chance, 2)},\n uitoolkit::{name}\n"
        yield f"Section: {chance.choice(SECTIONS)}\nPriority: optional\n\n"


def _version(chance: random.Random) -> str:
    epoch = chance.choice(("", "", "", "1:", "2:"))
    parts = ".".join(str(chance.randint(0, 20)) for _ in range(chance.randint(1, 4)))
    return f"{epoch}{parts}{chance.choice(('', '~rc1', '+dfsg', '+git20230101'))}-" \
           f"{chance.randint(1, 9)}{chance.choice(('', '.1', '+deb12u1'))}"  # fmt: skip


def requests(seed: int, number: int, bodies: float, query: int) -> Iterator[str]:
    """What is asked by HTTP: with bodies in some, and so many words of a query at most."""
    chance = random.Random(seed)
    for _ in range(number):
        path = "/".join(_word(chance) for _ in range(chance.randint(0, 5)))
        asked = "&".join(f"{_word(chance, 2)}={_word(chance)}%2{chance.randint(0, 9)}"
                         for _ in range(chance.randint(0, query)))  # fmt: skip
        has_body = chance.random() < bodies
        host = f"{_word(chance)}.example:{chance.randint(80, 9000)}"
        origin = f"http://{host}" if chance.random() < bodies / 4 else ""
        target = f"{origin}/{path}{'?' * bool(asked)}{asked}{chance.choice(('', '', '#top'))}"
        yield f"{chance.choice(METHODS[has_body])} {target} HTTP/1.1\r\nHost: {host}\r\n"
        yield from _fields(chance, ASKED)
        yield from _body(chance) if has_body else ("\r\n",)


def responses(seed: int, number: int, bodies: float) -> Iterator[str]:
    """What is answered by HTTP: with bodies in so many."""
    chance = random.Random(seed)
    for _ in range(number):
        has_body = chance.random() < bodies
        status = chance.choice(("200 OK", "200 OK", "404 Not Found", "500 Internal Server Error")
                               if has_body else ("204 No Content", "304 Not Modified"))  # fmt: skip
        yield f"HTTP/1.{chance.choice('11110')} {status}\r\n"
        yield from _fields(chance, ANSWERED)
        yield from _body(chance) if has_body else ("\r\n",)


METHODS = (("GET", "GET", "GET", "HEAD", "OPTIONS", "DELETE", "M-SEARCH"),
           ("POST", "PUT", "PATCH", "REPORT", "PROPFIND"))  # fmt: skip
"""Without a body, and with one."""
ASKED = ("Accept", "Accept-Encoding", "Accept-Language", "Cookie", "DNT", "Origin", "Referer",
         "User-Agent", "X-Trace")  # fmt: skip
ANSWERED = ("Age", "Cache-Control", "Content-Type", "Date", "ETag", "Expires", "Server",
            "Set-Cookie", "Vary", "Via")  # fmt: skip


def _fields(chance: random.Random, names: Sequence[str]) -> Iterator[str]:
    for name in chance.sample(names, chance.randint(1, len(names))):
        value = chance.choice((", ", "; ", "=")).join(
            _word(chance) for _ in range(chance.randint(1, 12))
        )
        folded = value.replace("; ", ";\r\n\t") if chance.random() < 0.05 else value
        yield f"{name}:{chance.choice((' ', ' ', '', '  '))}{folded}\r\n"
    yield f"Connection: {chance.choice(('keep-alive', 'Keep-Alive', 'TE, keep-alive'))}\r\n"


def _body(chance: random.Random) -> Iterator[str]:
    words = [_word(chance) for _ in range(chance.randint(1, 300))]
    if chance.random() < 0.5:
        body = " ".join(words)
        yield f"Content-Length: {len(body)}\r\n\r\n{body}"
        return
    yield "Transfer-Encoding: chunked\r\n\r\n"
    for start in range(0, len(words), 20):
        chunk = " ".join(words[start : start + 20])
        yield f"{len(chunk):x}{chance.choice(('', '', ';kind=' + words[0]))}\r\n{chunk}\r\n"
    yield f"0\r\n{chance.choice(('', 'Digest: ' + words[0] + chr(13) + chr(10)))}\r\n"


def measured(seed: int, number: int) -> Iterator[str]:
    """A day, a time, a level that wanders, what was lowest and highest, and noise."""
    chance = random.Random(seed)
    level, minutes = 100.0, 0
    for _ in range(number):
        minutes += chance.randint(1, 90)
        day, left = divmod(minutes, 24 * 60)
        yield f"{2000 + day // 336}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02} "
        yield f"{left // 60:02}:{left % 60:02} {level:.3f} {level - chance.expovariate(1):.3f} "
        yield f"{level + chance.expovariate(1):.3f} {chance.gauss(0, 1):.4f}\n"
        level = chance.gauss(level, 0.4)


def layout(seed: int, cells: int, shapes: int, corners: int, repeats: int) -> Iterator[bytes]:
    """A chip (GDSII): cells of so many shapes, parts that repeat them, and all parts in one."""
    chance = random.Random(seed)
    yield _record(0, 2, 600) + _record(1, 2, *[1] * 12) + _record(2, 6, b"CHIP")
    yield _record(3, 5, 1e-3, 1e-9)
    parts = [f"CELL{number}".encode() for number in range(cells)]
    for name in parts:
        yield _record(5, 2, *[1] * 12) + _record(6, 6, name)
        for _ in range(shapes):
            yield _shape(chance, corners)
        yield _record(7, 0)
    for level in range(2):
        names = [f"PART{level}-{number}".encode() for number in range(cells // 4 + 1)]
        for name in names:
            yield _record(5, 2, *[1] * 12) + _record(6, 6, name)
            for _ in range(4):
                yield _reference(chance, chance.choice(parts), repeats)
            yield _record(7, 0)
        parts = names
    yield _record(4, 0)


def _shape(chance: random.Random, corners: int) -> bytes:
    x, y, layer = chance.randint(-9999, 9999), chance.randint(-9999, 9999), chance.randint(1, 6)
    kind = chance.choice(("boundary", "boundary", "path", "text"))
    if kind == "text":
        told = _record(23, 1, 0) + _record(16, 3, x, y) + _record(25, 6, _word(chance).encode())
        return _record(12, 0) + _record(13, 2, layer) + _record(22, 2, 0) + told + _record(17, 0)
    number = chance.randint(3, corners)
    turns = sorted(chance.uniform(0, math.tau) for _ in range(number))
    lengths = [chance.randint(100, 2000) for _ in turns]
    around = [(x + int(length * math.cos(turn)), y + int(length * math.sin(turn)))
              for turn, length in zip(turns, lengths, strict=True)]  # fmt: skip
    if kind == "boundary":
        at = _record(16, 3, *[each for point in (*around, around[0]) for each in point])
        return _record(8, 0) + _record(13, 2, layer) + _record(14, 2, 0) + at + _record(17, 0)
    at = _record(15, 3, chance.choice((0, 50, 200)))
    at += _record(16, 3, *[each for point in around for each in point])
    return _record(9, 0) + _record(13, 2, layer) + _record(14, 2, 0) + at + _record(17, 0)


def _reference(chance: random.Random, name: bytes, repeats: int) -> bytes:
    x, y = chance.randint(-99999, 99999), chance.randint(-99999, 99999)
    if chance.random() < 0.5:
        columns, rows = chance.randint(1, repeats), chance.randint(1, repeats)
        corners = x, y, x + 20000 * columns, y, x, y + 20000 * rows
        told = _record(19, 2, columns, rows) + _record(16, 3, *corners)
        return _record(11, 0) + _record(18, 6, name) + told + _record(17, 0)
    told = _record(26, 1, chance.choice((0, 128)))
    told += _record(27, 5, chance.choice((1.0, 2.0, 0.5)))
    told += _record(28, 5, chance.choice((0.0, 90.0, 180.0, 33.25))) + _record(16, 3, x, y)
    return _record(10, 0) + _record(18, 6, name) + told + _record(17, 0)


def _record(kind: int, of: int, *values: Any) -> bytes:
    """One of GDSII: of nothing, bits, numbers of 2 or 4 bytes, real numbers, or (6) a text."""
    form = {0: "", 1: "H", 2: "h", 3: "i"}.get(of)
    if form is not None:
        told = struct.pack(f">{len(values)}{form}" if values else "", *values)
    elif of == 5:
        told = b"".join(map(_real, values))
    else:
        told = values[0] + b"\0" * (len(values[0]) % 2)
    return struct.pack(">HBB", len(told) + 4, kind, of) + told


def _real(value: float) -> bytes:
    """As GDSII has it: to the base 16, with 7 bytes behind the point."""
    if not value:
        return bytes(8)
    power = math.floor(math.log(value, 16)) + 1
    return bytes([power + 64]) + round(value * 16.0 ** (14 - power)).to_bytes(7, "big")


def drawing(seed: int, number: int, parts: int, *kinds: str) -> Iterator[str]:
    """A drawing (DXF) of entities of these kinds, of so many parts each at most."""
    chance = random.Random(seed)
    yield _groups((0, "SECTION"), (2, "ENTITIES"))
    for _ in range(number):
        kind, size = chance.choice(kinds), chance.randint(2, parts)
        layer = (8, _word(chance, 1)), (62, chance.randint(1, 9)), (6, "CONTINUOUS")
        yield _groups((0, kind), *layer, *ENTITIES[kind](chance, size))
        if kind == "POLYLINE":
            for _ in range(size):
                yield _groups((0, "VERTEX"), *_at(chance), (42, chance.choice((0, 0, 1))))
            yield _groups((0, "SEQEND"))
    yield _groups((0, "ENDSEC"), (0, "EOF"))


_Groups = Iterable[tuple[int, Any]]


def _groups(*groups: tuple[int, Any]) -> str:
    return "".join(f"{code:3}\n{value}\n" for code, value in groups)


def _at(chance: random.Random, number: int = 0) -> _Groups:
    for axis in (10, 20):
        yield axis + number, round(chance.uniform(-500, 500), chance.randint(0, 8))
    yield 30 + number, 0.0


def _lengths(chance: random.Random, *codes: int) -> _Groups:
    return [(code, round(chance.uniform(0.5, 90), 4)) for code in codes]


def _text(chance: random.Random, size: int) -> _Groups:
    words = " ".join(_word(chance) for _ in range(size))
    yield from _at(chance)
    yield from _lengths(chance, 40, 50)
    for start in range(0, len(words) - 250, 250):
        yield 3, words[start : start + 250]
    yield 1, words[-(len(words) % 250) :]


def _vertices(chance: random.Random, size: int) -> _Groups:
    yield from ((90, size), (70, chance.randint(0, 1)))
    for _ in range(size):
        yield from tuple(_at(chance))[:2]
        if chance.random() < 0.2:
            yield 42, chance.uniform(-1, 1)


def _spline(chance: random.Random, size: int) -> _Groups:
    yield from ((70, 8), (71, 3), (72, size + 4), (73, size), (74, 0))
    yield from ((40, float(knot)) for knot in range(size + 4))
    for _ in range(size):
        yield from _at(chance)


def _hatch(chance: random.Random, size: int) -> _Groups:
    solid = chance.randint(0, 1)
    yield from ((2, "SOLID" if solid else "ANSI31"), (70, solid), (71, 0), (91, 1), (92, 1))
    yield 93, size
    for _ in range(size):
        if chance.random() < 0.7:
            yield from ((72, 1), *tuple(_at(chance))[:2], *tuple(_at(chance, 1))[:2])
        else:
            yield from ((72, 2), *tuple(_at(chance))[:2], *_lengths(chance, 40, 50, 51), (73, 1))
    yield from ((97, 0), (75, 0), (76, 1), (52, 0.0), (41, 1.0), (77, 0), (78, 0), (98, 0))


def _sized(chance: random.Random, size: int) -> _Groups:
    yield from ((1, _word(chance)), (70, 32), *_at(chance), *_at(chance, 1), *_at(chance, 3))
    yield from (*_at(chance, 4), *_lengths(chance, 50, 41))


ENTITIES: dict[str, Callable[[random.Random, int], _Groups]] = {
    "POINT": lambda chance, _: _at(chance),
    "LINE": lambda chance, _: (*_at(chance), *_at(chance, 1)),
    "CIRCLE": lambda chance, _: (*_at(chance), *_lengths(chance, 40)),
    "ARC": lambda chance, _: (*_at(chance), *_lengths(chance, 40, 50, 51)),
    "ELLIPSE": lambda chance, _: (*_at(chance), *_at(chance, 1), *_lengths(chance, 40, 41, 42)),
    "SOLID": lambda chance, _: (each for number in range(4) for each in _at(chance, number)),
    "INSERT": lambda chance, _: ((2, _word(chance, 1)), *_at(chance), *_lengths(chance, 41, 50)),
    "POLYLINE": lambda chance, _: ((66, 1), (70, chance.randint(0, 1))),
    "LWPOLYLINE": _vertices, "SPLINE": _spline, "HATCH": _hatch, "DIMENSION": _sized,
    "TEXT": lambda chance, size: _text(chance, min(size, 20)), "MTEXT": _text,
}  # fmt: skip
"""What tells an entity of each kind, by group codes."""


TEXTS: tuple[tuple[str, Callable[..., Iterator[str]], Sequence[tuple[Any, ...]]], ...] = (
    ("hosts{}.txt", hosts, ((3000, "latin", "greek"), (3000, "cyrillic", "hebrew", "arabic"),
                            (4000, "kanji", "kana", "hangul", "wide"))),
    ("measured{}.txt", measured, ((20000,), (70000,))),
    ("records{}.txt", records, ((8000,), (20000,), (30000,))),
    ("requests{}.http", requests, ((3000, 0.1, 3), (3000, 0.8, 2), (3000, 0.0, 40))),
    ("responses{}.http", responses, ((3000, 0.2), (3000, 0.9))),
    ("drawing{}.dxf", drawing, (
        (20000, 8, "LINE", "LINE", "CIRCLE", "ARC", "POLYLINE", "TEXT", "INSERT"),
        (4000, 60, "LWPOLYLINE", "POLYLINE", "SOLID"), (4000, 30, "SPLINE", "HATCH", "ELLIPSE"),
        (12000, 60, "MTEXT", "DIMENSION", "LINE", "POINT", "INSERT"))),
)  # fmt: skip
"""Files, what makes their text, and what it is given for each beside a seed."""
FRESH = Group(PACKAGES, PROGRAMS, make_inputs)
