"""C++ names as their source writes them, from linkage names (Itanium C++ ABI, §5.1).

LIEF does the work, with the C++ runtime that it was built with.
"""

from __future__ import annotations

import re
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
    import lief

    symbol = lief.ELF.Symbol()
    symbol.name = name
    return str(symbol.demangled_name) or name  # empty where LIEF has no demangler


def _is_intricate(name: str) -> bool:
    return len(name) > _LONGEST or len(_BACK_REFERENCE.findall(name)) >= _MOST_REFERENCES


def demangled_text(text: str) -> str:
    """A text with every linkage name in it demangled.

    >>> demangled_text("Function _Z3foov+0x12")
    'Function foo()+0x12'
    """
    return _LINKAGE_NAME.sub(lambda match: demangled(match[0]), text)
