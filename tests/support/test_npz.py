"""Arrays in NumPy's archives: what NumPy writes is read, and nothing else."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

from lbr2pgo.support.npz import parse_array, read_arrays

KINDS = st.sampled_from(["<u8", "|u1", "<i4", "<i8", "|b1", "<U7", "<U1"])


def npy(array: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


@given(KINDS.flatmap(lambda kind: hn.arrays(kind, hn.array_shapes(min_dims=0, max_dims=1))))
def test_numpy_s_arrays_are_read(array: np.ndarray) -> None:
    found = parse_array(npy(array))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert np.array_equal(found, array)


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "format"),
        (npy([1])[:9], "header"),
        (npy([1]).replace(b"(1,)", b"(1, "), "header"),
        (npy([1]).replace(b"<i8", b"<i3"), "array of <i3"),
        (npy([1]).replace(b"<i8", b"|V8"), "array of"),
        (npy([1.0]), "float64"),
        (npy([[1]]), "2 dimensions"),
        (npy(["ab"]).replace(b"<U2", b"<U0"), "array of <U0"),
        (npy(["a"])[:-1] + b"\xff", "no characters"),
        (npy([1]) + b"\0", "cut off"),
    ],
)
def test_everything_else_is_refused(raw: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_array(raw)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_are_packed_as_numpy_packs_them(tmp_path: Path, method: int) -> None:
    path = tmp_path / "arrays.npz"
    np.savez_compressed(path, a=[1, 2])
    assert read_arrays(path)["a"].tolist() == [1, 2]
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", npy([1, 2]))
    with pytest.raises(ValueError, match="a: packed in a way"):
        read_arrays(path)
