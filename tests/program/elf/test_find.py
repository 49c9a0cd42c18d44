"""Files found by recorded path and build-id."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from builders.recordings import PIE, STATIC, STATIC_BUILD_ID

from lbr2pgo.program.elf.find import ImagePlaces


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def put(program: Path, place: Path) -> Path:
    place.parent.mkdir(parents=True)
    shutil.copy(program, place)
    return place


def test_a_sysroot_comes_first(tmp_path: Path) -> None:
    there = put(STATIC, tmp_path / "root/opt/app")
    places = ImagePlaces((tmp_path / "empty", tmp_path / "root"))
    assert places.find("/opt/app", STATIC_BUILD_ID) == there
    assert places.find("/opt/app", None) == there


def test_another_build_is_passed_over(tmp_path: Path) -> None:
    put(PIE, tmp_path / "root/opt/app")
    places = ImagePlaces((tmp_path / "root",))
    assert places.find("/opt/app", STATIC_BUILD_ID) is None
    assert places.find(str(STATIC), STATIC_BUILD_ID) == STATIC


def test_what_is_no_program_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "app").write_text("text")
    assert ImagePlaces().find(str(tmp_path / "app"), None) is None
    assert ImagePlaces().find(str(tmp_path / "missing"), None) is None
    assert ImagePlaces().find(str(STATIC), None) == STATIC


@pytest.mark.parametrize("place", [
    f".debug/.build-id/{STATIC_BUILD_ID[:2]}/{STATIC_BUILD_ID[2:]}/elf",
    f".cache/debuginfod_client/{STATIC_BUILD_ID}/executable",
])  # fmt: skip
def test_stores_by_build_id_have_what_is_gone(home: Path, place: str) -> None:
    there = put(STATIC, home / place)
    assert ImagePlaces().find("/gone", STATIC_BUILD_ID) == there
    assert ImagePlaces().find("/gone", None) is None


def test_debuginfod_may_keep_its_cache_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = put(STATIC, tmp_path / "cache" / STATIC_BUILD_ID / "executable")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    assert ImagePlaces().find("/gone", STATIC_BUILD_ID) == there
