"""C++ names as their source writes them, from linkage names (Itanium C++ ABI, §5.1).

The C++ runtime does the work, which NumPy's wheels need too. Where there is none of its usual name,
LIEF asks the one that it was built with, and takes a third of a second to load.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache

_LINKAGE_NAME = re.compile(r"(?<![\w.$])_Z[\w.$]+")
_LONGEST = 4096
_BACK_REFERENCE = re.compile("S[0-9A-Z]*_|T[0-9]*_")
_MOST_REFERENCES = 24
"""A name can double its length with every two references to parts of itself. Of the 102,000 C++
names that LLVM 22's and libstdc++'s libraries export, 35 hold so many."""


@cache
def demangled(name: str) -> str:
    """What a linkage name stands for; any other name, and one that is too intricate, as it is.

    >>> demangled("_ZN5shape4areaEv"), demangled("main")
    ('shape::area()', 'main')
    """
    if not _LINKAGE_NAME.fullmatch(name) or _is_intricate(name):
        return name
    return _demangler()(name) or name


_RUNTIME = "libstdc++.so.6"


@cache
def _demangler() -> Callable[[str], str]:
    """Demangles a name; what it returns is empty where it can't."""
    try:
        return _of_runtime(ctypes.CDLL(_RUNTIME))
    except (OSError, AttributeError):
        return _by_lief


def _of_runtime(runtime: ctypes.CDLL) -> Callable[[str], str]:
    """`__cxa_demangle` (Itanium C++ ABI, §3.4), whose answer is the caller's to free.

    Raises AttributeError if the library lacks it.
    """
    demangle, free = runtime["__cxa_demangle"], ctypes.CDLL(None)["free"]
    demangle.argtypes, demangle.restype = [ctypes.c_char_p, *[ctypes.c_void_p] * 3], ctypes.c_void_p
    free.argtypes, free.restype = [ctypes.c_void_p], None

    def demangled(name: str) -> str:
        answer = demangle(name.encode(), None, None, None)
        if not answer:
            return ""
        text = ctypes.string_at(answer).decode("utf-8", "backslashreplace")
        free(answer)
        return text

    return demangled


def _by_lief(name: str) -> str:
    import lief

    symbol = lief.ELF.Symbol()
    symbol.name = name
    return str(symbol.demangled_name)


def _is_intricate(name: str) -> bool:
    return len(name) > _LONGEST or len(_BACK_REFERENCE.findall(name)) >= _MOST_REFERENCES


_PIECES = re.compile(
    r"operator(?:\(\)|<=>|->\*?|<<=?|>>=?|[<>]=?)|\(anonymous [^()]*\)"
    r"|(?:vtable|guard variable) for |."
)
_CLONE = re.compile(r" \[clone [^]]*\]")
_QUALIFIERS = re.compile(r"(?<=\))(?: const| volatile| &&?)+(?=::|$)")


_UNIQUE = re.compile(r" \[clone \.__uniq\.\d+\]|\.__uniq\.\d+")
"""What clang's -funique-internal-linkage-names puts behind names of static functions, and what
demanglers make of it."""


def without_unique_suffix(name: str) -> str:
    """A function's name as its source has it.

    >>> without_unique_suffix("vdbeFree.__uniq.123456.llvm.789")
    'vdbeFree.llvm.789'
    >>> without_unique_suffix("vdbeFree(Vdbe*) [clone .__uniq.123456]")
    'vdbeFree(Vdbe*)'
    """
    return _UNIQUE.sub("", name)


@cache
def short_name(name: str) -> str:
    """What `demangled` gives, without the signature: what the function takes and returns.

    >>> short_name("_ZNK5shape7largestIiEET_RKSt6vectorIiE")
    'shape::largest<int>'
    >>> short_name("_ZZN12_GLOBAL__N_13runEiENKUliE_clEi"), short_name("main")
    ('(anonymous namespace)::run::{lambda#1}::operator()', 'main')
    """
    whole = demangled(name)
    return whole if whole == name else _without_signature(whole)


def _without_signature(name: str) -> str:
    """What stands in parentheses goes, but for names, and in the arguments of templates.

    >>> _without_signature("std::ostream& operator<< <char>(std::ostream&, char)")
    'operator<< <char>'
    >>> _without_signature("Shape::operator unsigned long() const [clone .cold]")
    'Shape::operator unsigned long [clone .cold]'
    """
    kept, clones = "", "".join(_CLONE.findall(name))
    angles = parentheses = start = 0
    for piece in _PIECES.findall(_QUALIFIERS.sub("", _CLONE.sub("", name))):
        angles += (piece == "<") - (piece == ">")
        if not angles:
            parentheses += (piece == "(") - (piece == ")")
        if not (parentheses or (piece == ")" and not angles)):
            kept += piece
            # What a function returns stands before its name.
            if piece == " " and not (angles or "operator" in kept):
                start = len(kept)
    return kept[start:] + clones


def demangled_text(text: str, named: Callable[[str], str] = demangled) -> str:
    """A text with every linkage name in it demangled, by `named`.

    >>> demangled_text("Function _Z3foov+0x12")
    'Function foo()+0x12'
    """
    if "_Z" not in text:  # as nearly all
        return text
    return _LINKAGE_NAME.sub(lambda match: named(match[0]), text)
