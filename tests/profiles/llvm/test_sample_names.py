import hashlib

import pytest

from lbr2pgo.profiles.llvm.sample_names import (
    Frame,
    canonical_name,
    context_order_key,
    guid,
    order_key,
)


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("f", "f"),
        ("f.llvm.123", "f"),
        ("f.part.0", "f"),
        ("f.part.0.llvm.1", "f"),
        ("f.llvm.1.part.0", "f.llvm.1"),
        ("f.__uniq.12", "f.__uniq.12"),
        ("f.__uniq.12.llvm.3", "f.__uniq.12"),
        ("f.__uniq.12.part.0", "f.__uniq.12"),
        ("f.cold", "f.cold"),
        ("f.isra.0", "f.isra.0"),
        ("f.llvm.1.cold", "f.llvm.1.cold"),
        ("f.constprop.0.part.1", "f.constprop.0"),
        (".llvm.1", ""),
    ],
)
def test_selected_suffixes(name, kept):
    assert canonical_name(name) == kept


def test_guid_is_llvms():
    assert guid("main") == 15822663052811949562  # llvm/test/Transforms/SampleProfile
    assert guid(7) == 7
    digest = hashlib.md5(b"caf\xff").digest()
    assert guid("caf\udcff") == int.from_bytes(digest[:8], "little")


def test_names_are_ordered_as_bytes_and_after_numbers():
    names = ["b", "\udcff", "é", "a\U0001f600", "a\uffff", "ab", "a", "", 2**64 - 1, 3]
    assert sorted(names, key=order_key) == [
        3, 2**64 - 1, "", "a", "ab", "a\uffff", "a\U0001f600", "b", "é", "\udcff",
    ]  # fmt: skip


def test_contexts_are_ordered_frame_by_frame():
    main, main_at_2 = Frame("main", (1, 0)), Frame("main", (1, 2))
    ordered = [
        (Frame("foo"),),
        (Frame("main"),),
        (main, Frame("bar")),
        (main, Frame("bar", (3, 0)), Frame("foo")),
        (main, Frame("foo")),
        (main_at_2, Frame("bar")),
    ]
    shuffled = ordered[3:] + ordered[:3]
    assert sorted(shuffled, key=context_order_key) == ordered
