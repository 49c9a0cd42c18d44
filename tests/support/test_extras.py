from __future__ import annotations

import json

import pytest

from lbr2pgo.support.errors import MissingToolError
from lbr2pgo.support.extras import extra


def test_a_package_that_is_there_is_handed_on() -> None:
    assert extra("json", "any", "this") is json


def test_one_that_is_not_names_what_installs_it() -> None:
    with pytest.raises(MissingToolError) as caught:
        extra("no_such_package.inner", "fleet", "merging on a cluster")
    assert str(caught.value) == (
        "merging on a cluster needs the package no_such_package, which is not installed\n"
        "Install it: pip install 'lbr2pgo[fleet]'."
    )
