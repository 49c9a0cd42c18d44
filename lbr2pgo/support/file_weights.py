"""What a file counts beside others: a number above 0, exact."""

from __future__ import annotations

import re
from fractions import Fraction

_WEIGHT = re.compile(r"[0-9]{1,18}(?:/[0-9]{1,18}|\.[0-9]{1,18})?")


def weight_of(text: object) -> Fraction:
    """The weight that a text or a number means; raises ValueError for what is none.

    >>> weight_of("1/3"), weight_of("0.25"), weight_of(2)
    (Fraction(1, 3), Fraction(1, 4), Fraction(2, 1))
    """
    if not _WEIGHT.fullmatch(str(text)):
        raise ValueError(f"{text!s:.40} is no weight, such as 3, 0.25 or 1/3")
    numerator, _, denominator = str(text).partition("/")
    if Fraction(numerator) == 0 or (denominator and int(denominator) == 0):
        raise ValueError(f"the weight {text} is not above 0")
    return Fraction(str(text))
