"""Programs that `fresh.py` met before: one of them decided how many calls `lbr2pgo pgo` spares.

They were the first to be chosen by the rule that `programs_fresh.py` goes on with. Debian 12's
source packages of main were put in the order of how many others depend on what they build (Depends
and Pre-Depends of its binary packages), which tells popularity without the archive's survey of
users. From the top, the first four in C and the first four in C++ were taken that

* are named by no text of this project and none of its history,
* do work on data they are given, and are no interface to a system, network, screen or database,
* can be built without any library but the language's own,
* are built from at most 120 source files that are written by hand in C or C++, without a configure
  step but for headers of a few lines,
* can do seconds of work by a command of their own, or by a driver of a few lines, on input from
  other packages or made by chance, with one thread and no instructions chosen at run time,
* do the same in each run, and are of a domain that none before is of.

So these are in C libxml2 (534 depend on it; XML), libjpeg-turbo (364; pictures, without its SIMD),
FreeType (271; fonts) and PCRE (112; regular expressions), and in C++ HarfBuzz (76; the shaping of
text), {fmt} (38; formatting), Hunspell (36; spelling) and yaml-cpp (19; YAML). All this was written
down, with what they train on and are judged by, before the first was profiled.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from fresh_programs import Group, Package, Program, inputs, listed

PACKAGES = (
    Package("libxml2", "2.9.14+dfsg-1.3~deb12u6",
            "4fe913dec8b1ab89d13b489b419a8203176ea39e931eaa0d25b17eafb9c279e9", "apt"),
    Package("libjpeg-turbo", "1:2.1.5-2",
            "254f3642b04e309fee775123133c6464181addc150499561020312ec61c1bf7c", "apt"),
    Package("freetype", "2.12.1+dfsg-5+deb12u4",
            "7dedb6b9adf331559daea614a83b8de42a753e685ec8e1c4bdb4529eb880b0d1", "apt"),
    Package("pcre3", "2:8.39-15",
            "b858099f82483031ee02092711689e7245586ada49e534a06e678b8ea9549e8b", "apt"),
    Package("harfbuzz", "6.0.0+dfsg-3",
            "89266cb363e49b6aa999eda04ca25b0d234a69ad9304679631371f4697652368", "apt"),
    Package("fmtlib", "9.1.0+ds1-2",
            "84ce1c2d0be3a9863935137969dcec6970125caac032f82474640bfc81463583", "apt"),
    Package("hunspell", "1.7.1-1",
            "b2d9c5369c2cc7f321cb5983fda2dbf007dce3d9e17519746840a6f0c4bf7444", "apt"),
    Package("yaml-cpp", "0.7.0+dfsg-8",
            "dc63708605404e0b963e0ca3a9619d1c8270eda2839603e6fa0384e5e51e5312", "apt"),
    # Only inputs are from these.
    *inputs("shared-mime-info", "dejavu-fonts-ttf", "source-serif-pro",
            "mime-db", "world-atlas", "world-countries"),
    Package("dictionary-en", "4.0.0",
            "160cba5e6c0230d43d70b0c929e498566ff2c3c4bcf840318d98ce28e31ee756", "npm"),
    Package("dictionary-es", "4.0.0",
            "b46986527b23ff1a578d601db7f1e6dc80cc36b728fdcb6044b5212e12e202d5", "npm"),
)  # fmt: skip


_XML = (
    "SAX SAX2 HTMLparser HTMLtree buf c14n catalog chvalid debugXML dict encoding entities error "
    "globals hash legacy list nanoftp nanohttp parser parserInternals pattern relaxng schematron "
    "threads tree uri valid xinclude xlink xmlIO xmllint xmlmemory xmlmodule xmlreader xmlregexp "
    "xmlsave xmlschemas xmlschemastypes xmlstring xmlunicode xmlwriter xpath xpointer"
)
_JPEG = (
    "jaricom jcapimin jcapistd jcarith jccoefct jccolor jcdctmgr jchuff jcicc jcinit jcmainct "
    "jcmarker jcmaster jcomapi jcparam jcphuff jcprepct jcsample jctrans jdapimin jdapistd jdarith "
    "jdatadst jdatasrc jdcoefct jdcolor jddctmgr jdhuff jdicc jdinput jdmainct jdmarker jdmaster "
    "jdmerge jdphuff jdpostct jdsample jdtrans jerror jfdctflt jfdctfst jfdctint jidctflt jidctfst "
    "jidctint jidctred jmemmgr jmemnobs jquant1 jquant2 jsimd_none jutils"
)
_FONTS = (
    "autofit/autofit base/ftbase base/ftbitmap base/ftdebug base/ftglyph base/ftinit base/ftmm "
    "base/ftsystem bdf/bdf cff/cff cid/type1cid gzip/ftgzip lzw/ftlzw pcf/pcf pfr/pfr psaux/psaux "
    "pshinter/pshinter psnames/psnames raster/raster sdf/sdf sfnt/sfnt smooth/smooth svg/svg "
    "truetype/truetype type1/type1 type42/type42 winfonts/winfnt"
)
_REGULAR = (
    "pcre_byte_order pcre_chartables pcre_compile pcre_config pcre_dfa_exec pcre_exec "
    "pcre_fullinfo pcre_get pcre_globals pcre_maketables pcre_newline pcre_ord2utf8 "
    "pcre_refcount pcre_string_utils pcre_study pcre_tables pcre_ucd pcre_valid_utf8 pcre_version "
    "pcre_xclass pcregrep"
)
_MIME = "$S/shared-mime-info/data/freedesktop.org.xml.in"
_DEJAVU = "$S/dejavu-fonts-ttf/ttf"
_SERIF = "$S/source-serif-pro/OTF/SourceSerifPro"
_TEXTS, _FACES = "$S/harfbuzz/perf/texts", "$S/harfbuzz/perf/fonts"
PROGRAMS = (
    Program(
        "libxml2", listed("libxml2", _XML),
        ["--format $S/libxml2/doc/libxml2-api.xml",
         "--html --noout $S/libxml2/doc/html/libxml-{tree,parser}.html",
         "--xpath 'count(//item[@id>100]/name)' ../orders1.xml"],
        [f"--repeat --noout {_MIME}",
         "--html --repeat --noout $S/pcre3/doc/html/pcrepattern.html",
         "--xpath 'sum(//order[total>500]/item[position()<3]/@id) + count(//name[contains(., "
         "\"ab\")])' ../orders2.xml"],
        flags="-I $D/libxml2 -I $S/libxml2/include -I $S/libxml2",
    ),
    Program(
        "libjpeg-turbo", listed("libjpeg-turbo", _JPEG),
        ["8 75 2 0 8 ../scene1.ppm", "4 90 1 1 4 ../scene2.ppm"],
        ["40 85 2 0 8 ../scene3.ppm", "20 60 2 1 8 ../scene4.ppm", "20 95 1 0 2 ../scene5.ppm"],
        "pictures.c", "-I $D -I $D/libjpeg-turbo -I $S/libjpeg-turbo",
    ),
    Program(
        "freetype", listed("freetype/src", _FONTS),
        [f"n 12 13 {_DEJAVU}/DejaVuSans.ttf", f"a 14 14 {_DEJAVU}/DejaVuSerif.ttf",
         f"n 15 16 {_SERIF}-Regular.otf"],
        [f"n 18 24 {_DEJAVU}/DejaVuSansMono-Bold.ttf {_FACES}/Roboto-Regular.ttf",
         f"a 11 16 {_FACES}/Amiri-Regular.ttf", f"n 20 60 {_SERIF}-BoldIt.otf"],
        "glyphs.c", "-DFT2_BUILD_LIBRARY -I $S/freetype/include",
    ),
    Program(
        "pcre", listed("pcre3", _REGULAR),
        ["-c '^\\s*\\*\\s+(\\w+)\\s+\\1\\b|(?i)glyph(?:s|_\\w+)?\\s*\\(' "
         "$S/freetype/docs/oldlogs/ChangeLog.2{1,3}",
         f"-o '[A-Z][a-z]+(?= [A-Z])' {'$S/freetype/docs/oldlogs/ChangeLog.24 ' * 5}",
         f"-u -c '\\p{{Lu}}\\p{{Ll}}{{3,}}\\W' {'$S/harfbuzz/perf/texts/en-*.txt ' * 2}"],
        ["-c '\\b(\\d{4})-\\d\\d-\\d\\d\\b.*<([^@>]+)@\\w+(\\.\\w+)+>|\\w+(?=[^(]*\\)\\.$)' "
         "$S/freetype/docs/oldlogs/ChangeLog.2{6,10}",
         "-n '(?i)\\b(un)?(match|compil|pattern)\\w*\\b.*?\\b(not|never|only)\\b' "
         f"{'$S/pcre3/ChangeLog $S/pcre3/doc/pcre.txt $S/libjpeg-turbo/libjpeg.txt ' * 40}",
         "-u -o '(?<!\\p{L})\\p{L}+[^\\x00-\\x7f]\\p{L}*' "
         f"{'$S/world-countries/countries.json $S/harfbuzz/perf/texts/fa-words.txt ' * 7}"],
        flags="-DHAVE_CONFIG_H -DSUPPORT_PCRE8 -DSUPPORT_UTF -DSUPPORT_UCP -DPCRE_STATIC "
        "-DHAVE_STRERROR -DHAVE_MEMMOVE -DHAVE_DIRENT_H -DHAVE_SYS_STAT_H -DHAVE_SYS_TYPES_H "
        "-DHAVE_UNISTD_H -I $S/pcre3",
    ),
    Program(
        "harfbuzz", ["harfbuzz/src/harfbuzz.cc"],
        [f"1 {_FACES}/Amiri-Regular.ttf {_TEXTS}/fa-words.txt",
         f"1 {_FACES}/Roboto-Regular.ttf {_TEXTS}/en-words.txt"],
        [f"3 {_FACES}/NotoNastaliqUrdu-Regular.ttf {_TEXTS}/fa-thelittleprince.txt",
         f"5 {_FACES}/Amiri-Regular.ttf {_TEXTS}/fa-thelittleprince.txt",
         f"20 {_SERIF}-It.otf {_TEXTS}/en-thelittleprince.txt"],
        "shape.cc", "-DHB_NO_MT -I $S/harfbuzz/src",
    ),
    Program(
        "fmt", ["fmtlib/src/format.cc", "fmtlib/src/os.cc"],
        ["1 60000 '{0},{1},{2},{3}\\n'", "2 60000 '{2:>12} {0:#x} {1:.3f}\\n' '{1:e};{0:+d}\\n'"],
        ["3 800000 '{{\"name\": \"{2}\", \"at\": [{1:.2f}, {0}], \"on\": {3}}}\\n'",
         "4 500000 '|{0:>22}|{1:<14.6g}|{2:^16}|\\n' '{0:b}\\n'",
         "5 700000 '{1}\\t{1:012.1f}\\t{2:*<9}\\t{0:o}\\n'"],
        "report.cc", "-I $S/fmtlib/include",
    ),
    Program(
        "hunspell", ["hunspell/src/hunspell/*.cxx"],
        ["1 10000 400 $S/dictionary-en/index.{aff,dic}"],
        ["2 200000 10000 $S/dictionary-en/index.{aff,dic}",
         "3 20000 1000 $S/dictionary-es/index.{aff,dic}",
         "4 10000 400 $S/dictionary-es/index.{aff,dic}"],
        "spell.cc", "-DHUNSPELL_STATIC -I $S/hunspell/src/hunspell",
    ),
    Program(
        "yaml-cpp", ["yaml-cpp/src/*.cpp"],
        ["1 ../services1.yaml", "1 $S/mime-db/db.json"],
        ["4 ../services2.yaml", "1 $S/world-atlas/countries-50m.json", "6 ../table.yaml"],
        "settings.cc", "-I $S/yaml-cpp/include",
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder; and the headers that would be configured."""
    sources = Path("sources")
    xml = sources / "libxml2" / "include" / "libxml" / "xmlversion.h"
    xml.write_text(_xml_version(xml.with_suffix(".h.in").read_text()))
    for name in ("config.h.generic", "pcre.h.generic", "pcre_chartables.c.dist"):
        shutil.copy(sources / "pcre3" / name, sources / "pcre3" / Path(name).stem)
    sizes = {1: (320, 240), 2: (400, 200), 3: (640, 480), 4: (500, 700), 5: (800, 400)}
    for seed, (width, height) in sizes.items():
        Path(f"scene{seed}.ppm").write_bytes(scene(seed, width, height))
    for seed, number in ((1, 2000), (2, 40000)):
        Path(f"orders{seed}.xml").write_text("".join(orders(seed, number)))
    for seed, number in ((1, 60), (2, 300)):
        Path(f"services{seed}.yaml").write_text("".join(services(seed, number)))
    Path("table.yaml").write_text("".join(table(3, 1500)))


_ABSENT = {"FTP", "HTTP", "ICONV", "ICU", "LZMA", "MEM_DEBUG", "MODULES", "RUN_DEBUG", "THREADS",
           "THREAD_ALLOC", "TRIO", "ZLIB", "DOCB"}  # fmt: skip
_VERSION = {
    "VERSION": "2.9.14", "LIBXML_VERSION_NUMBER": "20914", "LIBXML_VERSION_EXTRA": "",
    "MODULE_EXTENSION": ".so",
}  # fmt: skip


def _xml_version(template: str) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        return _VERSION.get(name) or str(int(name.removeprefix("WITH_") not in _ABSENT))

    return re.sub("@([A-Z0-9_]+)@", value, template)


def scene(seed: int, width: int, height: int) -> bytes:
    """A picture (P6): slow shades, discs with sharp edges, and noise."""
    chance = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    colours = np.zeros((height, width, 3))
    for channel in range(3):
        across, down, shift = chance.uniform(0.005, 0.05, 3)
        colours[:, :, channel] = 128 + 90 * np.sin(x * across + y * down + shift * 100)
    for _ in range(40):
        at_x, at_y, radius = chance.uniform(0, (width, height, 60))
        colours[(x - at_x) ** 2 + (y - at_y) ** 2 < radius**2] = chance.uniform(0, 255, 3)
    colours += chance.normal(0, 6, colours.shape)
    return b"P6 %d %d 255\n%s" % (width, height, colours.clip(0, 255).astype(np.uint8).tobytes())


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("abcdefghijklmnorstuvw", k=chance.randint(2, 10)))


def orders(seed: int, number: int) -> Iterator[str]:
    """XML of records, with attributes, entities and text."""
    chance = random.Random(seed)
    yield "<?xml version='1.0' encoding='UTF-8'?>\n<orders>\n"
    for order in range(number):
        yield f'  <order number="{order}" by="{_word(chance)} &amp; {_word(chance)}">\n'
        for _ in range(chance.randint(1, 5)):
            name = f"{_word(chance)} {_word(chance)}"
            yield f'    <item id="{chance.randint(1, 999)}"><name>{name}</name></item>\n'
        yield f"    <total>{chance.random() * 1000:.2f}</total><!-- {_word(chance)} -->\n"
        yield "  </order>\n"
    yield "</orders>\n"


def services(seed: int, number: int) -> Iterator[str]:
    """Documents of YAML as people write it: blocks, flows, quotes, anchors and comments."""
    chance = random.Random(seed)
    for service in range(number):
        name = _word(chance)
        yield f"---\n# Service {service}\nname: {name}\nlabels: &labels{service}\n"
        for _ in range(chance.randint(1, 6)):
            yield f"  {_word(chance)}.{_word(chance)}/{_word(chance)}: '{_word(chance)}'\n"
        yield f"spec:\n  selector:\n    match: *labels{service}\n  containers:\n"
        for _ in range(chance.randint(1, 4)):
            yield f'  - image: "registry/{_word(chance)}:{chance.randint(1, 30)}\\t"\n'
            yield f"    ports: [{chance.randint(1, 9999)}, {chance.randint(1, 9999)}]\n"
            yield f"    limits: {{cpu: {chance.random():.2f}, memory: {chance.randint(1, 64)}Gi}}\n"
            yield f"    command: |\n      exec {_word(chance)} \\\n        --{_word(chance)}\n"
        yield f"notes: >-\n  {' '.join(_word(chance) for _ in range(9))}\n  {_word(chance)}\n"


def table(seed: int, number: int) -> Iterator[str]:
    """One sequence of flat maps."""
    chance = random.Random(seed)
    for row in range(number):
        yield f"- id: {row}\n  at: 2024-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}\n"
        yield f"  value: {chance.gauss(0, 50):.4f}\n  tag: !t {_word(chance)}\n  ok: yes\n"


MET2 = Group(PACKAGES, PROGRAMS, make_inputs)
