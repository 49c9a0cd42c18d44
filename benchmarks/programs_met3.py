"""Programs that `fresh.py` met before: a default of `lbr2pgo pgo` was chosen after looking at them.

They are the second eight by the rule that `programs_met2.py` began and `programs_fresh.py` goes on
with: from where the first set ended, which is PCRE with 112 in C and yaml-cpp with 19 in C++, the
next four in C and the next four in C++. So these are in C file's libmagic (94 depend on it; kinds
of files), libogg (88; packets of streams), FLAC (75; sound, without its SIMD and Ogg) and Little
CMS (64; colours), and in C++ muParser (9; formulas), LIBSVM (8; learning), ODE (8; mechanics,
without meshes) and MeCab (7; words of Japanese). The rule was not changed. All this was written
down, with what they train on and are judged by, before the first was profiled.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fresh_programs import Group, Package, Program, inputs, listed
from programs_met2 import scene

PACKAGES = (
    Package("file", "1:5.44-3",
            "3751c7fba8dbc831cb8d7cc8aff21035459b8ce5155ef8b0880a27d028475f3b", "apt"),
    Package("libogg", "1.3.5-3",
            "c4d91be36fc8e54deae7575241e03f4211eb102afb3fc0775fbbc1b740016705", "apt"),
    Package("flac", "1.4.2+ds-2",
            "47274ac8fcb1f0e6caa91d29f943925d7a40c0a3f6357c3275773bdb1ee46638", "apt"),
    Package("lcms2", "2.14-2+deb12u1",
            "28474ea6f6591c4d4cee972123587001a4e6e353412a41b3e9e82219818d5740", "apt"),
    Package("muparser", "2.3.3-0.1",
            "91d26d8274ae9cd9c776ee58250aeddc6b574f369eafd03b25045b858a2b8177", "apt"),
    Package("libsvm", "3.24+ds-6",
            "fd8fbf3179765dfcfdf949184b4b2c3c1a3a03834549ce48d42cd0269858f8c3", "apt"),
    Package("ode", "2:0.16.2-1",
            "b26aebdcb015e2d89720ef48e0cb2e8a3ca77915f89d853893e7cc861f810f22", "apt"),
    Package("mecab", "0.996-14",
            "e073325783135b72e666145c781bb48fada583d5224fb2490fb6c1403ba69c59", "apt"),
    # Only inputs are from these.
    Package("mecab-ipadic", "2.7.0-20070801+main-3",
            "b62f527d881c504576baed9c6ef6561554658b175ce6ae0096a60307e49e3523", "apt"),
    *inputs("shared-mime-info", "dejavu-fonts-ttf", "source-serif-pro", "world-countries"),
)  # fmt: skip


def _given(names: str) -> str:
    return " ".join(f"-D{name}" for name in names.split())


_KINDS = (
    "apprentice apptype ascmagic buffer cdf cdf_time compress der encoding fmtcheck fsmagic funcs "
    "is_csv is_json is_tar magic print readcdf readelf softmagic strlcat strlcpy"
)
_LOSSLESS = (
    "bitmath bitreader bitwriter cpu crc fixed float format lpc md5 memory metadata_iterators "
    "metadata_object stream_decoder stream_encoder stream_encoder_framing window"
)
_FORMULAS = (
    "muParser muParserBase muParserBytecode muParserCallback muParserError muParserTokenReader"
)
_BODIES = (
    "array box capsule collision_cylinder_box collision_cylinder_plane collision_cylinder_sphere "
    "collision_kernel collision_quadtreespace collision_sapspace collision_space "
    "collision_transform collision_trimesh_disabled collision_util convex cylinder "
    "default_threading error export-dif fastdot fastldltfactor fastldltsolve fastlsolve "
    "fastltsolve fastvecscale heightfield lcp mass mat matrix memory misc objects obstack ode "
    "odeinit odemath odeou plane quickstep ray resource_control rotation simple_cooperative sphere "
    "step threading_base threading_impl timer util joints/*"
)
_WORDS = (
    "char_property connector context_id dictionary dictionary_compiler dictionary_generator "
    "dictionary_rewriter eval feature_index iconv_utils lbfgs learner learner_tagger libmecab "
    "nbest_generator param string_buffer tagger tokenizer utils viterbi writer"
)
_RULES = "$S/file/magic/Magdir"
_ICC = "$S/lcms2/testbed"
PROGRAMS = (
    Program(
        "libmagic", listed("file/src", _KINDS),
        [f"8 0 {_RULES} $S/file/tests/*.testfile",
         f"5 0 {_RULES} {_ICC}/*.icc $S/dejavu-fonts-ttf/ttf/DejaVuSans.ttf"],
        [f"10 0 {_RULES} $S/muparser/*/*.{{cpp,h}} $S/ode/ode/src/*.cpp",
         f"100 1040 {_RULES} $S/dejavu-fonts-ttf/ttf/*.ttf $S/source-serif-pro/{{OTF,TTF}}/*",
         f"1 32 {_RULES} $S/world-countries/{{data/[a-c]*,dist/*}} $S/shared-mime-info/po/*.po"],
        "kinds.c", _given(
            "_GNU_SOURCE VERSION='\"5.44\"' MAGIC='\"magic\"' HAVE_ASCTIME_R HAVE_ASPRINTF "
            "HAVE_CTIME_R HAVE_DPRINTF HAVE_FORK HAVE_GETLINE HAVE_GMTIME_R HAVE_INTTYPES_H "
            "HAVE_LOCALTIME_R HAVE_MBRTOWC HAVE_MEMMEM HAVE_MKSTEMP HAVE_PREAD HAVE_STDINT_H "
            "HAVE_STRCASESTR HAVE_STRNDUP HAVE_SYS_WAIT_H HAVE_UNISTD_H HAVE_VASPRINTF "
            "HAVE_WCHAR_H HAVE_WCTYPE_H HAVE_WCWIDTH"
        ) + " -I $S/file/src",
    ),
    Program(
        "libogg", ["libogg/src/*.c"],
        ["1 20000 3 400 9 100", "2 400 1 20000 32 50"],
        ["3 1000000 8 60 5 1000", "4 1500 1 60000 24 1000000", "5 120000 16 700 32 5"],
        "packets.c", "-I $D/libogg -I $S/libogg/include",
    ),
    Program(
        "flac", listed("flac/src/libFLAC", _LOSSLESS),
        ["5 44100 16 ../tones.pcm", "2 8000 8 ../hum.pcm"],
        [f"8 48000 24 {'../plucked.pcm ' * 5}", f"6 16000 16 {'../talk.pcm ' * 8}",
         f"3 96000 16 {'../noise.pcm ' * 9}"],
        "sounds.c", _given(
            "FLAC__NO_DLL FLAC__HAS_OGG=0 FLAC__NO_ASM ENABLE_64_BIT_WORDS=1 HAVE_FSEEKO "
            "HAVE_INTTYPES_H HAVE_LROUND HAVE_STDINT_H PACKAGE_VERSION='\"1.4.2\"'"
        ) + " -I $S/flac/include -I $S/flac/src/libFLAC/include",
    ),
    Program(
        "lcms2", ["lcms2/src/*.c"],
        ["9 srgb lab 0 0 8 ../scene1.ppm", f"2 {_ICC}/test1.icc srgb 0 0 16 ../scene2.ppm"],
        [f"15 srgb {_ICC}/test2.icc 1 0 8 ../scene3.ppm",
         f"9 lab {_ICC}/test5.icc 0 8192 16 ../scene4.ppm",
         "8 xyz grey 1 64 float ../scene5.ppm"],
        "colours.c", "-I $D -I $S/lcms2/include",
    ),
    Program(
        "muparser", listed("muparser/src", _FORMULAS, "cpp"),
        ["1500 40 0 'sin(x)*2+y^2-n/3' '(x>0) ? mixed(x,y) : -sqrt(y)*n' "
         "'max(x,y,n,4)+sum(x,1,y)'",
         "9 4000 1 'x*x+y*y-2*x*y+g' '3k+signum(x)'"],
        ["6000 1 0 '((x+1)*(y-2)/(n+3)-(x-4)*(y+5))*(n-6)^2+7*(8-x)*(9+y)/(10+n*n)' "
         "'abs(min(rint(x),sqrt(y))-avg(n,x,y,g))+exp(-x^2/2)'",
         "8 900000 0 '((2*x-3)*x+5)*x-7+((y-1)*y+n)*y' 'x*y*n-(x+y)/(n+1)'",
         "300 30000 1 '(x>y && n<8) ? ((n>4) ? x : mixed(y,n)) : (x<0 || y>3) ? tanh(x) : 2k'"],
        "formulas.cc", "-DMUPARSER_STATIC -I $S/muparser/include",
    ),
    Program(
        "libsvm", ["libsvm/svm.cpp"],
        ["0 2 0.08 1 0.5 0 9 $S/libsvm/heart_scale", "4 1 0.05 1 0.5 0 0 ../few.examples"],
        ["0 0 0.1 1 0.5 1 0 ../three.examples", "3 2 0.1 2 0.5 0 5 ../sparse.examples",
         "1 3 0.01 1 0.2 0 3 ../many.examples"],
        "learn.cc", "-I $S/libsvm",
    ),
    Program(
        "ode", [*listed("ode/ode/src", _BODIES, "cpp"), "ode/ou/src/ou/[cm]*.cpp"],
        ["1 heap 30 1200 1", "2 chains 24 500 0"],
        ["3 cars 60 4000 1", "4 heap 41 5000 0", "5 pins 151 4000 1"],
        "bodies.cc", _given(
            "dIDEDOUBLE __ODE__ dNODEBUG dOU_ENABLED dTHREADING_INTF_DISABLED HAVE_ALLOCA_H "
            "HAVE_GETTIMEOFDAY HAVE_MALLOC_H _OU_FEATURE_SET=_OU_FEATURE_SET_BASICS "
            "_OU_NAMESPACE=odeou _OU_TARGET_OS=_OU_TARGET_OS_GENUNIX"
        ) + " -I $D/ode -I $S/ode/include -I $S/ode/ode/src -I $S/ode/ou/include",
    ),
    Program(
        "mecab", listed("mecab/src", _WORDS, "cpp"),
        # Its first training makes the dictionary that all others use.
        ["index -d ../words -o ../words -f euc-jp -t utf-8",
         "-r /dev/null -d ../words ../sentences1.txt"],
        ["-r /dev/null -d ../words -O wakati ../sentences2.txt",
         "-r /dev/null -d ../words -N 4 ../kinds.txt",
         "-r /dev/null -d ../words -O simple ../countries.txt"],
        "words.cc", _given(
            "DIC_VERSION=102 PACKAGE='\"mecab\"' VERSION='\"0.996\"' "
            "MECAB_DEFAULT_RC='\"mecabrc\"' HAVE_DIRENT_H HAVE_FCNTL_H HAVE_ICONV HAVE_MMAP "
            "HAVE_OPENDIR HAVE_STDINT_H HAVE_STRING_H HAVE_SYS_MMAN_H HAVE_SYS_STAT_H "
            "HAVE_SYS_TYPES_H HAVE_UNISTD_H ICONV_CONST="
        ) + " -std=c++14 -I $S/mecab/src",
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder; and the header that would be configured."""
    sources = Path("sources")
    header = sources / "file" / "src" / "magic.h"
    header.write_text(header.with_suffix(".h.in").read_text().replace("X.YY", "544"))
    sizes = {1: (160, 120), 2: (100, 80), 3: (640, 480), 4: (500, 700), 5: (800, 400)}
    for seed, (width, height) in sizes.items():
        Path(f"scene{seed}.ppm").write_bytes(scene(seed, width, height))
    for name, (channels, each) in SOUNDS.items():
        Path(f"{name}.pcm").write_bytes(sound(len(name), channels, each, name))
    for name, (number, values, kinds, share) in EXAMPLES.items():
        Path(f"{name}.examples").write_text("".join(examples(number, values, kinds, share)))
    dictionary(sources / "mecab-ipadic", Path("words"))
    for seed, number in ((1, 12000), (2, 90000)):
        text = "".join(sentences(Path("words"), seed, number))
        Path(f"sentences{seed}.txt").write_text(text)
    # MeCab reads one file.
    Path("kinds.txt").write_bytes((sources / "shared-mime-info/po/ja.po").read_bytes() * 15)
    Path("countries.txt").write_bytes((sources / "world-countries/countries.json").read_bytes() * 7)


SOUNDS = {
    "tones": (2, 400000), "hum": (1, 900000),
    "plucked": (2, 300000), "talk": (1, 2000000), "noise": (6, 300000),
}  # fmt: skip
"""Channels, and samples of each."""
EXAMPLES = {
    "few": (900, 12, 3, 1.0),
    "three": (1200, 20, 3, 1.0), "sparse": (1000, 60, 2, 0.2), "many": (1500, 30, 2, 0.7),
}  # fmt: skip
"""How many, values of each, kinds, and the share of values that are told."""
PARTS = (
    "Adverb", "Auxil", "Conjunction", "Noun.adjv", "Noun.number", "Noun.verbal", "Postp",
    "Postp-col", "Prefix", "Suffix", "Symbol",
)  # fmt: skip
"""Of the dictionary."""
ORDER = (
    "Conjunction", "Noun.verbal", "Postp", "Adverb", "Noun.adjv", "Postp", "Noun.verbal", "Auxil"
)  # fmt: skip
"""Of parts in a sentence."""


def sound(seed: int, channels: int, number: int, kind: str) -> bytes:
    """The number of channels in a byte, and samples of 16 bits."""
    chance = np.random.default_rng(seed)
    at = np.arange(number)
    made = np.zeros((number, channels))
    for channel in range(channels):
        pitch = chance.uniform(0.01, 0.1)
        if kind == "plucked":
            since = at % 17000
            made[:, channel] = np.exp(-since / 4000) * np.sin(since * pitch * (at // 17000 % 5 + 1))
        elif kind == "talk":
            loud = np.sin(at / 9000) * np.sin(at / 31000) > 0.1
            made[:, channel] = loud * np.sin(at * pitch + 3 * np.sin(at / 700)) * 0.4
        elif kind == "noise":
            made[:, channel] = np.sign(np.sin(at * pitch)) * 0.2 + chance.normal(0, 0.1, number)
        else:
            made[:, channel] = np.sin(at * pitch) * 0.3 + np.sin(at * pitch * 2.7) * 0.1
        made[:, channel] += chance.normal(0, 0.002, number)
    return bytes([channels]) + (made.clip(-1, 1) * 32000).astype("<i2").tobytes()


def examples(number: int, values: int, kinds: int, share: float) -> Iterator[str]:
    """Lines of LIBSVM's examples; of which kind one is, is told by products of its values."""
    chance = random.Random(number)
    for _ in range(number):
        row = [chance.gauss(0, 1) for _ in range(values)]
        kind = int(row[0] * row[1] + row[2] > 0) + int(kinds > 2 and row[3] > 0.3)
        told = (f" {i}:{each:.4f}" for i, each in enumerate(row, 1) if chance.random() < share)
        yield f"{kind}{''.join(told)}\n"


def dictionary(of: Path, to: Path) -> None:
    """IPADIC, without names and most verbs."""
    to.mkdir(exist_ok=True)
    for file in of.iterdir():
        if file.suffix == ".def" or file.name == "dicrc" or file.stem in PARTS:
            shutil.copy(file, to)


def sentences(words: Path, seed: int, number: int) -> Iterator[str]:
    """Words of the dictionary in the order of a sentence; every ninth is none of it."""
    chance = random.Random(seed)
    parts = {
        part: [line.split(",")[0] for line in
               (words / f"{part}.csv").read_text(encoding="euc_jp").splitlines()]
        for part in ORDER
    }  # fmt: skip
    for _ in range(number):
        for part in ORDER[chance.randint(0, 2) :]:
            is_known = chance.random() > 1 / 9
            yield chance.choice(parts[part]) if is_known else _unknown(chance)
        yield "。\n"


def _unknown(chance: random.Random) -> str:
    first, last = chance.choice((("ァ", "ヴ"), ("a", "z"), ("一", "鿋"), ("0", "9")))
    return "".join(chr(chance.randint(ord(first), ord(last))) for _ in range(chance.randint(1, 6)))


MET3 = Group(PACKAGES, PROGRAMS, make_inputs)
