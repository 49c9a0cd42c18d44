"""Programs that `fresh.py` met before: rules of `lbr2pgo pgo` were made after looking at them.

Eight programs, half in C and half in C++, from source packages of PyPI: picosat, cmark-gfm, lexbor
and tree-sitter in C, edlib, libsass, simdjson and Clipper in C++. They and their inputs were
written down before the first of them was profiled, and none was left out for its result. How often
a judging run goes over its input was set afterwards, so that it lasts long enough to be timed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fresh_programs import HERE, Group, Package, Program, inputs
from which_profile import call

PACKAGES = (
    Package("pycosat", "0.6.6",
            "a376cfae20b16fcfbef24bf3c047a8a294c35032bb051fa98842c12bbab6f0ff"),
    Package("edlib", "1.3.9.post1",
            "b0fb6e85882cab02208ccd6daa46f80cb9ff1d05764e91bf22920a01d7a6fbfa"),
    Package("cmarkgfm", "2025.10.22",
            "5bec61007b65b919488442c838c58a6c8bf4741f5103c593b2ef180d39818eda"),
    Package("selectolax", "1.0.2",
            "f0508ad927aa426425d4aa7a2bb2f8b21c01412534465bd227e241d4d0a6a418"),
    Package("tree-sitter", "0.25.2",
            "fe43c158555da46723b28b52e058ad444195afd1db3ca7720c59a254544e9c20"),
    Package("tree-sitter-c", "0.24.2",
            "1628584df0299b5a340aa63f8e67b6c97c91517f52fa7e7a4c557e40adb330a9"),
    Package("libsass", "0.23.0",
            "6f209955ede26684e76912caf329f4ccb57e4a043fd77fe0e7348dd9574f1880"),
    Package("pysimdjson", "7.0.2",
            "44cf276e48912a3b9c7ca362c14da8420a7ac15a9f1a16ec95becff86db3904a"),
    Package("pyclipper", "1.4.0",
            "9882bd889f27da78add4dd6f881d25697efc740bf840274e749988d25496c8e1"),
    # Only inputs are from these.
    Package("bootstrap", "4.6.2",
            "2cf88a607ca6e0fa48e02e4d922308e5a871f9064e0f81577b2f68e46a6495cb", "npm"),
    Package("bulma", "0.9.4",
            "f6c9a8615510fb0c93087908fd9a770fd3d3870456feeb88f2ff40958cdd1e95", "npm"),
    Package("foundation-sites", "6.6.3",
            "c8346cb52d82229c2a9b7e8b573197136ea1f34e10db601acc27ed6fb64afc1a", "npm"),
    Package("materialize-css", "1.0.0",
            "2b115821c99f2a2c00d0a6e804b714a5e55683fa06051e299d05af719fb2870a", "npm"),
    *inputs("mime-db", "world-atlas", "world-countries"),
    Package("reveal.js", "4.3.1",
            "bdf20ce4158a3dc2f4f55e891f34837ebc80f37323897f68e4a627102e690243", "npm"),
    Package("spectre.css", "0.5.9",
            "285c3bc709a1c30a83c8276f0f87b838e3089ec41c78621e496b638146eeeb03", "npm"),
    Package("uikit", "3.5.0",
            "ad88104dc5adfd273f7bccff3f982c63f9980d457e8943f0235a2f5219bdfc54", "npm"),
)  # fmt: skip

_CMARK = "cmarkgfm/third_party/cmark"
_LEXBOR = "selectolax/lexbor/source/lexbor"
_TREE = "tree-sitter/tree_sitter/core/lib"
_MARKDOWN = "-e table -e strikethrough -e autolink -e tagfilter -e tasklist"
_PAGES = "$S/foundation-sites/test/visual/xy-grid/*.html"
_MENUS = "'nav li > a[href], .grid .column:nth-child(2), div:not([class]) p'"
PROGRAMS = (
    Program(
        "picosat", ["pycosat/picosat.c"],
        ["../sat150.cnf ../sat160.cnf", "../holes7.cnf", "../colours3.cnf"],
        ["../sat190.cnf ../sat200.cnf", "../holes8.cnf", "../colours4.cnf " * 10],
        "solve.c", "-I $S/pycosat -DNDEBUG",
    ),
    Program(
        "edlib", ["edlib/edlib/src/edlib.cpp"],
        ["1 12 4000 15 NW", "2 200 1000 5 HW", "3 100 1500 30 SHW"],
        ["4 30 9000 10 NW", "5 80 4000 20 HW", "6 6000 300 15 SHW"],
        "align.cc", "-I $S/edlib/edlib/include",
    ),
    Program(
        "cmark-gfm", [f"{_CMARK}/src/*.c", f"{_CMARK}/extensions/*.c"],
        [f"{_MARKDOWN} {'$S/pycosat/HOW_WE_USE_GITHUB.md $S/selectolax/README.md ' * 40}"],
        [f"{_MARKDOWN} {'$S/selectolax/lexbor/README.md $S/edlib/README.md ' * 400}",
         f"{_MARKDOWN} {'$S/selectolax/CHANGES.md ' * 400}",
         f"{_MARKDOWN} {'$S/tree-sitter/README.md $S/selectolax/lexbor/CHANGELOG.md ' * 400}"],
        flags=f"-DCMARK_GFM_STATIC_DEFINE -I $S/cmarkgfm/generated/unix -I $S/{_CMARK}/src "
        f"-I $S/{_CMARK}/extensions",
    ),
    Program(
        "lexbor",
        [f"{_LEXBOR}/{part}/**/*.c" for part in
         ("core", "css", "dom", "html", "ns", "selectors", "tag", "ports/posix")],
        [f"8 {_MENUS} $S/spectre.css/docs/elements/forms.html $S/spectre.css/docs/layout/*.html"],
        ["100 'ul > li.uk-active, .uk-container a[href=\"#\"], h1 ~ div' "
         "$S/uikit/tests/navbar.html",
         f"100 '.cell p, .callout h5, a[data-toggle]' {_PAGES}",
         "500 'section[data-background] > h2, script, .slides > section > p:first-of-type' "
         "$S/reveal.js/demo.html $S/reveal.js/plugin/notes/*.html"],
        "pages.c", "-I $S/selectolax/lexbor/source",
    ),
    Program(
        "tree-sitter", [f"{_TREE}/src/lib.c", "tree-sitter-c/src/parser.c"],
        [f"1 $S/{_CMARK}/src/{{blocks,inlines,node,html,utf8}}.c"],
        ["3 $S/pycosat/picosat.c", f"3 $S/{_TREE}/src/{{parser,query,subtree,stack}}.c",
         f"2 $S/{_LEXBOR}/{{css/*.c,dom/interfaces/*.c}}"],
        "trees.c", f"-D_DEFAULT_SOURCE -I $S/{_TREE}/include -I $S/{_TREE}/src "
        "-I $S/tree-sitter-c/src",
    ),
    Program(
        "libsass", ["libsass/libsass/src/*.c", "libsass/libsass/src/*.cpp"],
        ["$S/foundation-sites/assets/foundation.scss $S/foundation-sites/scss "
         "$S/foundation-sites/_vendor", "$S/spectre.css/src/spectre.scss"],
        ["$S/bootstrap/scss/bootstrap.scss", "$S/bulma/bulma.sass",
         "$S/materialize-css/sass/materialize.scss"],
        "sass.c", "-I $S/libsass/libsass/include -DLIBSASS_VERSION='\"3.6.5\"'", "-lm -ldl",
    ),
    Program(
        "simdjson", ["pysimdjson/simdjson/simdjson.cpp"],
        ["20 $S/mime-db/db.json", "4 ../one.json"],
        ["20 $S/world-atlas/countries-50m.json", "80 $S/world-countries/countries.json",
         "80 ../two.json"],
        # What it takes shall not depend on the processor.
        "minify.cc", "-I $S/pysimdjson/simdjson -DSIMDJSON_IMPLEMENTATION_HASWELL=0 "
        "-DSIMDJSON_IMPLEMENTATION_ICELAKE=0",
    ),
    Program(
        "clipper", ["pyclipper/src/clipper.cpp"],
        ["1 60 25 0 0", "2 60 25 1 1", "3 20 60 2 1"],
        ["4 8 120 0 1", "5 300 12 3 0", "6 80 30 1 2"],
        "clip.cc", "-I $S/pyclipper/src",
    ),
)  # fmt: skip


def make_inputs() -> None:
    """What no package has, in this folder."""
    if not Path("two.json").exists():
        call(sys.executable, HERE / "programs" / "documents.py", "one.json", "two.json")
    formulas = {
        "sat150": random_formula(150), "sat160": random_formula(160),
        "sat190": random_formula(190), "sat200": random_formula(200),
        "holes7": pigeons(7), "holes8": pigeons(8),
        "colours3": colouring(120, 270, 3), "colours4": colouring(90, 390, 4),
    }  # fmt: skip
    for name, clauses in formulas.items():
        lines = (f"{' '.join(map(str, clause))} 0\n" for clause in clauses)
        Path(f"{name}.cnf").write_text("".join(lines))


Clauses = Iterator[Sequence[int]]


def random_formula(variables: int) -> Clauses:
    """Clauses of three, so many that it is hard to tell whether all can be met."""
    chance = random.Random(variables)
    for _ in range(round(4.26 * variables)):
        some = chance.sample(range(1, variables + 1), 3)
        yield [each * chance.choice((1, -1)) for each in some]


def pigeons(holes: int) -> Clauses:
    """One pigeon more than there are holes."""
    for pigeon in range(holes + 1):
        yield [pigeon * holes + hole + 1 for hole in range(holes)]
    for hole in range(holes):
        for one in range(holes + 1):
            for other in range(one):
                yield [-(one * holes + hole + 1), -(other * holes + hole + 1)]


def colouring(nodes: int, edges: int, colours: int) -> Clauses:
    """Of a random graph: neighbours differ."""
    chance = random.Random(nodes)
    for node in range(nodes):
        yield [node * colours + colour + 1 for colour in range(colours)]
    for _ in range(edges):
        one, other = chance.sample(range(nodes), 2)
        for colour in range(colours):
            yield [-(one * colours + colour + 1), -(other * colours + colour + 1)]


MET = Group(PACKAGES, PROGRAMS, make_inputs)
