"""Programs that `fresh.py` met before: `lbr2pgo pgo` learned two rules from two of them.

They are the third eight by the rule that `programs_met2.py` began and `programs_fresh.py` goes on
with: from where the second set ended, which is Little CMS with 64 in C and MeCab with 7 in C++, the
next four in C and the next four in C++. So these are in C GNU FriBidi (54 depend on it; the order
of text in two directions), libexif (49; what cameras write beside pictures), libsodium (41;
encryption, without its SIMD) and pixman (32; pictures laid over each other, without its SIMD), and
in C++ uchardet (5; encodings of text), MMDB (4; where atoms of molecules are), QR Code generator
(4; codes to be read by cameras) and ANN (3; nearest neighbours). The rule was not changed. All this
was written down, with what they train on and are judged by, before the first was profiled.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from fresh_programs import Group, Package, Program, inputs, listed
from programs_met2 import scene

from lbr2pgo.support.arrays import F64

PACKAGES = (
    Package("fribidi", "1.0.8-2.1",
            "94c7b68d86ad2a9613b4dcffe7bbeb03523d63b5b37918bdf2e4ef34195c1e6c", "apt"),
    Package("libexif", "0.6.24-1+deb12u1",
            "d3fb7c47829ec4d2def39aa38f4c35a0891763448a05dbf216a329a12bf198f9", "apt"),
    Package("libsodium", "1.0.18-1+deb12u1",
            "d59323c6b712a1519a5daf710b68f5e7fde57040845ffec53850911f10a5d4f4", "apt"),
    Package("pixman", "0.42.2-1",
            "ea1480efada2fd948bc75366f7c349e1c96d3297d09a3fe62626e38e234a625e", "apt"),
    Package("uchardet", "0.0.7-1",
            "3fc79408ae1d84b406922fa9319ce005631c95ca0f34b205fad867e8b30e45b1", "apt"),
    Package("mmdb", "2.0.22-1",
            "a9646933ce9f34633e1ae4901f2383af0e5318d6490851328f5b6aa06195ab51", "apt"),
    Package("qr-code-generator", "1.8.0-1.1",
            "2ec0a4d33d6f521c942eeaf473d42d5fe139abcfa57d2beffe10c5cf7d34ae60", "apt"),
    Package("ann", "1.1.2+doc-9",
            "1a8053e4f1ee284430758a2d864e567d9b4b08c0f6562460c9913497fafc78c1", "apt"),
    # Only inputs are from these.
    *inputs("shared-mime-info", "world-countries", "mime-db"),
)  # fmt: skip

_COMPOSED = (
    "access access-accessors arm bits-image combine-float combine32 conical-gradient edge "
    "edge-accessors fast-path filter general glyph gradient-walker image implementation "
    "linear-gradient matrix mips noop ppc radial-gradient region16 region32 solid-fill timer trap "
    "utils x86"
)
_PO = "$S/shared-mime-info/po"
_CAMERAS = "$S/libexif/test/testdata"
_ENCODED = "$S/uchardet/test"
_COUNTRIES = "$S/world-countries/dist"
PROGRAMS = (
    Program(
        "fribidi", ["fribidi/lib/*.c", *listed("fribidi/bin", "fribidi-main getopt getopt1")],
        [f"--width 76 {'../paragraphs1.txt ' * 25}", f"--rtl --nopad {f'{_PO}/ar.po ' * 80}"],
        ["--nobreak --nopad --levels ../paragraphs2.txt ../paragraphs2.txt ../paragraphs2.txt",
         f"--wltr --nopad --clean --width 120 {'$S/world-countries/countries.json ' * 10}",
         f"--rtl --ltov {f'{_PO}/fa.po {_PO}/he.po {_PO}/vi.po ' * 20}"],
        flags="-DHAVE_CONFIG_H -I $D/fribidi -I $S/fribidi/lib -I $S/fribidi/bin",
    ),
    Program(
        "libexif", ["libexif/libexif/*.c", "libexif/libexif/*/*.c"],
        [f"1500 M 0 {_CAMERAS}/{{canon*,olympus*_2}}.jpg", f"8000 0 0 {_CAMERAS}/pentax*_2.jpg"],
        [f"4000 I 0 {_CAMERAS}/pentax*_[34].jpg", f"10000 0 1 {_CAMERAS}/{{fuji*,olympus*_4}}.jpg",
         f"1200 M 0 {_CAMERAS}/olympus*_[35].jpg"],
        "tags.c", "-I $D/libexif -I $S/libexif",
    ),
    Program(
        "libsodium", ["libsodium/src/libsodium/**/*.c"],
        ["1 2000 3000 sad", "2 2500 200 mg"],
        ["3 5000 800 ba", "4 2500 20000 edmo", "5 350 4000 gps"],
        "secrets.c", "-DCONFIGURED=1 -DHAVE_TI_MODE -DHAVE_C_VARARRAYS -DHAVE_WEAK_SYMBOLS "
        "-DNATIVE_LITTLE_ENDIAN -DSODIUM_STATIC -I $D/libsodium -I $D/libsodium/sodium "
        "-I $S/libsodium/src/libsodium/include -I $S/libsodium/src/libsodium/include/sodium",
    ),
    Program(
        "pixman", ["pixman/pixman/pixman.c",
                   *(f"pixman/pixman/pixman-{name}.c" for name in _COMPOSED.split())],
        ["50 3 32 b e 10 130 ../scene1.ppm", "400 3 16 n t 0 100 ../scene2.ppm"],
        ["6 12 float s 0 20 50 ../scene3.ppm", "80 9 32 b r 25 200 ../scene4.ppm",
         "40 48 16 n w 0 100 ../scene5.ppm"],
        "layers.c", "-DHAVE_CONFIG_H -I $D/pixman -I $D -I $S/pixman/pixman",
    ),
    Program(
        "uchardet", ["uchardet/src/*.cpp", "uchardet/src/*/*.cpp"],
        [f"{f'{_ENCODED}/{{de,fr,ja,ru}}/*.txt ' * 100}", "../{ru,ja}.*.text"],
        [f"{f'{_ENCODED}/{{ar,el,he,hu,ko,pl,th,tr,vi,zh}}/* ' * 160}",
         "../{cs,el,he,ko,uk,zh_CN}.*.text",
         f"{f'{_PO}/*.po $S/world-countries/*.json ' * 16}"],
        flags="-DVERSION='\"0.0.7\"' -I $S/uchardet/src",
    ),
    Program(
        "mmdb", ["mmdb/mmdb2/*.cpp"],
        ["50 sc '/*/A,B/*/*' 5 ../molecule1.pdb", "20 po '/*/A/10-80/CA,CB' 4 ../molecule1.pdb"],
        ["25 cnb '//*/*/*[C]' 6 ../molecule2.pdb", "20 ps '//*/*(!PRO)/CA' 9 ../molecule2.pdb",
         "6 o '*' 4 ../molecule3.pdb"],
        "molecules.cc", "-I $S/mmdb/mmdb2",
    ),
    Program(
        "qr-code-generator", ["qr-code-generator/cpp/qrcodegen.cpp"],
        ["3 1 1 -1 0 ../tickets1.txt", "80 0 1 3 1 $S/mime-db/README.md"],
        ["1 3 1 -1 0 ../tickets2.txt", f"1 2 5 -1 1 {_COUNTRIES}/countries.csv",
         "4 0 1 5 0 ../tickets3.txt"],
        "codes.cc", "-I $S/qr-code-generator/cpp",
    ),
    Program(
        "ann", ["ann/src/*.cpp"],
        ["1 20000 3 80000 5 0 k 1 s 0", "2 20000 8 24000 3 50 b 4 p 1"],
        ["3 100000 4 60000 12 0 k 8 s 1", "4 50000 10 4000 6 100 b 1 p 0",
         "5 80000 2 100000 20 10 k 2 r 0"],
        "neighbours.cc", "-std=c++14 -I $S/ann/include",
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder."""
    for seed, number, marks in ((1, 800, 0.0), (2, 6000, 0.15)):
        text = "".join(paragraphs(seed, number, marks))
        Path(f"paragraphs{seed}.txt").write_text(text)
    sizes = {1: (160, 120), 2: (640, 480), 3: (640, 480), 4: (500, 700), 5: (800, 500)}
    for seed, (width, height) in sizes.items():
        Path(f"scene{seed}.ppm").write_bytes(scene(seed, width, height))
    for language, encodings in ENCODINGS.items():
        text = Path("sources/shared-mime-info/po", f"{language}.po").read_text()
        for encoding in encodings.split():
            Path(f"{language}.{encoding}.text").write_bytes(text.encode(encoding, "replace") * 40)
    for seed, chains, number in ((1, 3, 150), (2, 6, 250), (3, 8, 400)):
        Path(f"molecule{seed}.pdb").write_text("".join(molecule(seed, chains, number)))
    for seed, number in ((1, 200), (2, 1500), (3, 3000)):
        Path(f"tickets{seed}.txt").write_text("".join(tickets(seed, number)))


ENCODINGS = {
    "ru": "koi8_r cp1251 iso8859_5", "ja": "euc_jp shift_jis iso2022_jp",
    "cs": "iso8859_2 cp1250", "el": "iso8859_7 cp1253", "he": "cp1255", "ko": "euc_kr iso2022_kr",
    "uk": "cp1251 utf_16", "zh_CN": "gb18030 big5 hz",
}  # fmt: skip
"""What texts are written in, by their language."""
LETTERS = {"latin": "az", "hebrew": "את", "arabic": "ني", "digits": "09", "arabic digits": "٠٩"}
"""The first and last of each kind."""
MARKS = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"
"""What opens embeddings, overrides and isolates; two others close them."""


def paragraphs(seed: int, number: int, marks: float) -> Iterator[str]:
    """Words of two directions, with brackets, points, numbers, and with marks of direction."""
    chance = random.Random(seed)
    for _ in range(number):
        kinds = chance.choices(tuple(LETTERS), (4, 4, 4, 1, 1), k=chance.randint(3, 60))
        for kind in kinds:
            word = _letters(chance, kind)
            if chance.random() < 0.12:
                word = chance.choice(("(%s)", "[%s]", "%s,", "%s:", "-%s", "%s%%", "“%s”")) % word
            if chance.random() < marks:
                mark = chance.choice(MARKS)
                word = f"{mark}{word} {_letters(chance, chance.choice(kinds))}"
                word += "\u202c" if mark < "\u2066" else "\u2069"
            yield word + " "
        yield "\n"


def _letters(chance: random.Random, kind: str) -> str:
    first, last = sorted(map(ord, LETTERS[kind]))
    return "".join(chr(chance.randint(first, last)) for _ in range(chance.randint(1, 9)))


ACIDS = (
    "ALA", "ARG", "ASN", "ASP", "CYS", "GLN", "GLU", "GLY", "HIS", "ILE",
    "LEU", "LYS", "MET", "PHE", "PRO", "SER", "THR", "TRP", "TYR", "VAL",
)  # fmt: skip
TURNS = {"helix": (-57, -47), "strand": (-125, 130), "turn": (60, 30)}
"""Degrees by which a chain is turned about the two bonds of an acid."""


def molecule(seed: int, chains: int, number: int) -> Iterator[str]:
    """A protein (PDB): chains that are much alike, of helices, strands and turns."""
    chance = random.Random(seed)
    acids = chance.choices(ACIDS, k=number)
    folds = [kind for _ in range(number) for kind in [chance.choice(tuple(TURNS))]
             * chance.randint(4, 12)]  # fmt: skip
    yield "HEADER    PROTEIN\nCRYST1   90.000  100.000  110.000  90.00  90.00  90.00 P 1\n"
    serial = 0
    for chain in range(chains):
        here = np.array([chance.gauss(0, 15) for _ in range(3)])
        for residue, atoms in enumerate(_backbone(chance, folds[:number]), 1):
            acid = acids[residue - 1] if chance.random() < 0.9 else chance.choice(ACIDS)
            for name, at in atoms.items():
                serial += 1
                x, y, z = at + here
                yield (f"ATOM  {serial:5}  {name:<3} {acid} {chr(65 + chain)}{residue:4}    "
                       f"{x:8.3f}{y:8.3f}{z:8.3f}  1.00 20.00           {name[0]}\n")  # fmt: skip
        serial += 1
        yield f"TER   {serial:5}      {acid} {chr(65 + chain)}{residue:4}\n"
    yield "END\n"


def _backbone(chance: random.Random, folds: Sequence[str]) -> Iterator[dict[str, F64]]:
    before = [np.array(at, float) for at in ((0, 0, 0), (1.3, 0, 0), (1.9, 1.3, 0))]
    last = 0.0
    for fold in folds:
        first, second = (chance.gauss(degrees, 1) for degrees in TURNS[fold])
        made: dict[str, F64] = {}
        for name, length, angle, turn in (
            ("N", 1.33, 116, last), ("CA", 1.46, 121, 180), ("C", 1.52, 111, first)
        ):  # fmt: skip
            one, two, three = before[-3:]
            made[name] = _placed(one, two, three, length, angle, turn)
            before.append(made[name])
        made["O"] = _placed(made["N"], made["CA"], made["C"], 1.23, 120, second + 180)
        made["CB"] = _placed(made["C"], made["N"], made["CA"], 1.53, 110, -122)
        yield made
        last = second


def _placed(one: F64, two: F64, three: F64, length: float, angle: float, turn: float) -> F64:
    """So far from the third, in degrees to the second, and turned about the bond of both."""
    along = (three - two) / np.linalg.norm(three - two)
    across = np.cross(two - one, along)
    across /= np.linalg.norm(across)
    bent, turned = math.radians(angle), math.radians(turn)
    up = np.cross(across, along)
    sideways = math.cos(turned) * up + math.sin(turned) * across
    placed: F64 = three + length * (math.sin(bent) * sideways - math.cos(bent) * along)
    return placed


def tickets(seed: int, number: int) -> Iterator[str]:
    """Lines of digits, of capitals, of addresses, and of words in some language."""
    chance = random.Random(seed)
    for _ in range(number):
        kind, size = chance.choice("dctw"), chance.randint(4, 120)
        if kind == "d":
            yield "".join(chance.choices("0123456789", k=size)) + "\n"
        elif kind == "c":
            yield "".join(chance.choices("ABCDEFGHIJKLMNOP0123456789-:/ ", k=size)) + "\n"
        elif kind == "t":
            name = "".join(chance.choices("abcdefghijkl-", k=size // 2))
            yield f"https://{name}.example/{chance.randint(0, 10**9)}?id={chance.random()}\n"
        else:
            words = (_letters(chance, chance.choice(tuple(LETTERS))) for _ in range(size // 5))
            yield f"{' '.join(words)}\n"


MET4 = Group(PACKAGES, PROGRAMS, make_inputs)
