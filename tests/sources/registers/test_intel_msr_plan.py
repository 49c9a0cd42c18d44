from __future__ import annotations

import pytest

from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.intel_msr_plan import FILTERS, TRAPS, Wanted, plan
from lbr2pgo.support.errors import InputError


def values(bank: lbr.Bank, depth: int, wanted: Wanted) -> dict[int, int]:
    """What the registers hold after all writes."""
    return {write.number: write.value for write in plan(bank, depth, wanted)}


def test_the_plain_recording() -> None:
    writes = plan(lbr.MODEL_SPECIFIC, 16, Wanted())
    assert (writes[0].number, writes[0].value) == (0x1D9, 0)
    assert (writes[1].number, writes[1].value) == (0x1C8, 1)
    assert {w.number for w in writes[2:-1]} == {*range(0x680, 0x690), *range(0x6C0, 0x6D0)}
    assert (writes[-1].number, writes[-1].value) == (0x1D9, 0x801)
    assert all(write.why for write in writes)


@pytest.mark.parametrize(
    ("wanted", "select"),
    [
        (Wanted(("cond",)), 0x1F9),
        (Wanted(("any_call",)), 0x0E5),
        (Wanted(("any_ret", "ind_jmp"), kernel=True), 0x09C),
        (Wanted(user=False, kernel=True), 0x2),
        (Wanted(call_stack=True), 0x3C5),
    ],
)
def test_lbr_select(wanted: Wanted, select: int) -> None:
    assert values(lbr.MODEL_SPECIFIC, 16, wanted)[0x1C8] == select


def test_call_stacks_are_not_frozen() -> None:
    assert values(lbr.MODEL_SPECIFIC, 16, Wanted(call_stack=True))[0x1D9] == 1
    assert values(lbr.ARCHITECTURAL, 16, Wanted(call_stack=True))[0x1D9] == 0


def test_architectural() -> None:
    assert values(lbr.ARCHITECTURAL, 32, Wanted()) == {0x14CE: 0x7F0005, 0x14CF: 32, 0x1D9: 0x800}
    assert values(lbr.ARCHITECTURAL, 8, Wanted(("cond",), kernel=True))[0x14CE] == 0x10007


@pytest.mark.parametrize("bank", [lbr.MODEL_SPECIFIC, lbr.ARCHITECTURAL])
@pytest.mark.parametrize("kind", FILTERS)
def test_what_is_planned_decodes_to_what_was_wanted(bank: lbr.Bank, kind: str) -> None:
    found = lbr.filter_of(values(bank, 16, Wanted((kind,))), bank)
    assert found is not None
    assert (found.user, found.kernel, found.call_stack) == (True, False, False)
    recorded = len(found.kinds)
    assert recorded == {"any": 7, "any_call": 3, "any_ret": 2}.get(kind, 1)


@pytest.mark.parametrize(
    ("model", "source", "target", "has_select"),
    [
        ("core2", 0x40, 0x60, False), ("bonnell", 0x40, 0x60, False),
        ("silvermont", 0x40, 0x60, True), ("knl", 0x680, 0x6C0, True),
    ],
)  # fmt: skip
def test_short_rings_have_the_registers_of_their_model(
    model: str, source: int, target: int, has_select: bool
) -> None:
    """Linux: arch/x86/events/intel/lbr.c, intel_pmu_lbr_init_core, _atom, _slm and _knl."""
    bank, depth = lbr.MODELS[model]
    wanted = Wanted(kernel=True)
    numbers = {write.number for write in plan(bank, depth, wanted)}
    ring = {*range(source, source + depth), *range(target, target + depth)}
    assert numbers == ring | {0x1D9} | ({0x1C8} if has_select else set())
    assert depth == (4 if model == "core2" else 8)


@pytest.mark.parametrize("wanted", [Wanted(), Wanted(("cond",), kernel=True)])
def test_without_a_filter_register_only_everything_can_be_recorded(wanted: Wanted) -> None:
    with pytest.raises(InputError, match="has no filter"):
        plan(lbr.CORE, 4, wanted)


def test_the_traps_are_named() -> None:
    assert len(TRAPS) == 2
    assert "C2" in TRAPS[0]
    assert "interrupt" in TRAPS[1]


@pytest.mark.parametrize(
    ("depth", "wanted", "message"),
    [
        (12, Wanted(), "never has 12 entries"),
        (16, Wanted(("in_tx",)), "no filter 'in_tx'"),
        (16, Wanted(user=False), "neither user nor kernel"),
    ],
)
def test_impossible_plans(depth: int, wanted: Wanted, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(lbr.MODEL_SPECIFIC, depth, wanted)
