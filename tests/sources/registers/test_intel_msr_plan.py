from __future__ import annotations

import pytest

from lbr2pgo.sources.registers import intel_lbr as lbr
from lbr2pgo.sources.registers.intel_msr_plan import FILTERS, TRAPS, WantedBranches, plan, wanted_of
from lbr2pgo.support.errors import InputError

HASWELL = lbr.MODELS["haswell"]


def architectural(depth: int) -> lbr.Model:
    return lbr.Model(lbr.ARCHITECTURAL, depth, has_call_stack=True)


def values(model: lbr.Model, wanted: WantedBranches) -> dict[int, int]:
    """What the registers hold after all writes."""
    return {write.number: write.value for write in plan(model, wanted)}


def test_the_plain_recording() -> None:
    writes = plan(HASWELL, WantedBranches())
    assert (writes[0].number, writes[0].value) == (0x1D9, 0)
    assert (writes[1].number, writes[1].value) == (0x1C8, 1)
    assert {w.number for w in writes[2:-1]} == {*range(0x680, 0x690), *range(0x6C0, 0x6D0)}
    assert (writes[-1].number, writes[-1].value) == (0x1D9, 0x801)
    assert all(write.why for write in writes)


@pytest.mark.parametrize(
    ("wanted", "select"),
    [
        (WantedBranches(("cond",)), 0x1F9),
        (WantedBranches(("any_call",)), 0x0E5),
        (WantedBranches(("any_ret", "ind_jmp"), kernel=True), 0x09C),
        (WantedBranches(user=False, kernel=True), 0x2),
        (WantedBranches(call_stack=True), 0x3C5),
    ],
)
def test_lbr_select(wanted: WantedBranches, select: int) -> None:
    assert values(HASWELL, wanted)[0x1C8] == select


def test_call_stacks_are_not_frozen() -> None:
    assert values(HASWELL, WantedBranches(call_stack=True))[0x1D9] == 1
    assert values(architectural(16), WantedBranches(call_stack=True))[0x1D9] == 0


def test_architectural() -> None:
    assert values(architectural(32), WantedBranches()) == {
        0x14CE: 0x7F0005,
        0x14CF: 32,
        0x1D9: 0x800,
    }
    assert values(architectural(8), WantedBranches(("cond",), kernel=True))[0x14CE] == 0x10007


# LBR_SELECT as Linux' tables have it for Nehalem (nhm_lbr_sel_map) and for what came after it.
@pytest.mark.parametrize(
    ("kind", "nehalem", "later"),
    [
        ("any_call", 0x025, 0x0E5), ("ind_call", 0x1AD, 0x1ED), ("any_ret", 0x01D, 0x0DD),
        ("cond", 0x1F9, 0x1F9), ("ind_jmp", 0x1BD, 0x1BD), ("any", 0x001, 0x001),
    ],
)  # fmt: skip
def test_nehalem_records_calls_only_with_jumps(kind: str, nehalem: int, later: int) -> None:
    for model in ("nehalem", "silvermont"):
        assert values(lbr.MODELS[model], WantedBranches((kind,)))[0x1C8] == nehalem
    for model in ("sandybridge", "knl", "haswell", "skylake"):
        assert values(lbr.MODELS[model], WantedBranches((kind,)))[0x1C8] == later
    said = next(
        w.why for w in plan(lbr.MODELS["nehalem"], WantedBranches((kind,))) if w.number == 0x1C8
    )
    assert ("(erratum)" in said) == (nehalem != later)


@pytest.mark.parametrize("model", ["nehalem", "sandybridge", "knl", "silvermont"])
def test_there_is_no_call_stack_before_haswell(model: str) -> None:
    with pytest.raises(InputError, match="no call-stack mode: it came with Haswell"):
        plan(lbr.MODELS[model], WantedBranches(call_stack=True))


def test_filters_are_those_of_perf_record() -> None:
    assert wanted_of(["any_call", "u"]) == WantedBranches(("any_call",))
    assert wanted_of(["u", "k"]) == WantedBranches(("any",), user=True, kernel=True)
    assert wanted_of(["k", "cond"]) == WantedBranches(("cond",), user=False, kernel=True)
    assert wanted_of([]) == WantedBranches()
    with pytest.raises(InputError, match="no filter 'in_tx'"):
        wanted_of(["in_tx"])


@pytest.mark.parametrize("model", [HASWELL, architectural(16)])
@pytest.mark.parametrize("kind", FILTERS)
def test_what_is_planned_decodes_to_what_was_wanted(model: lbr.Model, kind: str) -> None:
    found = lbr.filter_of(values(model, WantedBranches((kind,))), model.bank)
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
    depth = lbr.MODELS[model].depth
    numbers = {write.number for write in plan(lbr.MODELS[model], WantedBranches(kernel=True))}
    ring = {*range(source, source + depth), *range(target, target + depth)}
    assert numbers == ring | {0x1D9} | ({0x1C8} if has_select else set())
    assert depth == (4 if model == "core2" else 8)


@pytest.mark.parametrize("wanted", [WantedBranches(), WantedBranches(("cond",), kernel=True)])
def test_without_a_filter_register_only_everything_can_be_recorded(wanted: WantedBranches) -> None:
    with pytest.raises(InputError, match="has no filter"):
        plan(lbr.MODELS["core2"], wanted)


def test_the_traps_are_named() -> None:
    assert len(TRAPS) == 2
    assert "C2" in TRAPS[0]
    assert "interrupt" in TRAPS[1]


@pytest.mark.parametrize(
    ("depth", "wanted", "message"),
    [
        (12, WantedBranches(), "never has 12 entries"),
        (16, WantedBranches(user=False), "neither user nor kernel"),
    ],
)
def test_impossible_plans(depth: int, wanted: WantedBranches, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plan(lbr.Model(lbr.MODEL_SPECIFIC, depth), wanted)
