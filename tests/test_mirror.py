"""Tests stand where their module does: `lbr2pgo/a/b.py` has `tests/a/test_b.py`, or a reason."""

from __future__ import annotations

import ast
from pathlib import Path

from builders.fixtures import ROOT

PACKAGE, TESTS = ROOT / "lbr2pgo", Path(__file__).parent

NOTHING_TO_TEST = {
    "model/perf_abi.py": "numbers and structs of perf's",
    "native/bits.pyx": "numbers that loops and modules share",
    "native/perf_abi.pyx": "the same",
    "profiles/llvm/extbinary_layout.py": "numbers of the format",
    "program/code/architecture.py": "records of what an architecture is",
    "reports/assets/refresh.py": "run by hand when a library's version is to change",
}
"""Modules that do nothing, and what they hold."""

TESTED_AS_A_WHOLE = {
    "api/reporting.py": "api/test_tasks.py",
    "__main__.py": "cli/test_main.py",
    "analyses/code_profile.py": "reports/exports/test_exports.py",
    "analyses/evidence.py": "reports/test_gather.py",
    "analyses/flow_graph.py": "analyses/test_chains.py",
    "analyses/judging.py": "cli/test_accuracy.py",
    "analyses/recorded_profile.py": "profiles/test_reader.py",
    "profiles/carried/sample_carrier.py": "profiles/carried/test_line_profile.py",
    "dumping/units.py": "program/dwarf/test_compile_units.py",
    "pgo/finished.py": "pgo/test_loop.py",
    "pgo/loop_flags.py": "pgo/test_loop.py",
    "pgo/loop_options.py": "pgo/test_loop.py",
    "pgo/search_options.py": "pgo/test_search.py",
    "pgo/post_link.py": "test_examples.py",
    "pgo/variants.py": "pgo/test_search.py",
    "pgo/workplace.py": "pgo/test_loop.py",
    "cli/reporting.py": "cli/test_report.py",
    "profiles/llvm/contexts/probed_runs.py": "profiles/llvm/contexts/test_probe_contexts.py",
    "evidence/contexts/unwound_code.py": "evidence/contexts/test_unwind.py",
    "evidence/contexts/context_finding.py": "profiles/llvm/test_context_forms.py",
    "evidence/data_accesses.py": "analyses/test_data_accesses.py",
    "evidence/vtable_loads.py": "profiles/llvm/test_vtables.py",
    "profiles/llvm/vtable_counts.py": "profiles/llvm/test_vtables.py",
    "evidence/fetch_misses.py": "analyses/test_fetch_misses.py",
    "recorders/delivery.py": "recorders/test_software.py",
    "recorders/stream_recording.py": "recorders/test_software.py",
    "recorders/branch_recorder.py": "recorders/test_facility.py",
    "evidence/collector.py": "reports/test_gather.py",
    "support/_search.pyx": "support/test_distinct.py",
    "support/executables.py": "cli/test_parser.py",
    "support/budget.py": "test_costs.py",
    "fleet/counting.py": "fleet/test_fleet.py",
    "fleet/fleet_files.py": "fleet/test_fleet.py",
    "fleet/runners.py": "fleet/test_fleet.py",
    "program/blocks/binary_context.py": "program/blocks/test_basic_blocks.py",
    "profiles/bolt/fdata/fdata_tables.py": "profiles/bolt/fdata/test_fdata_text.py",
    "profiles/bolt/fdata/sum_fdata.py": "fleet/test_merge.py",
    "profiles/carried/changed_code.py": "profiles/carried/test_carried_fdata.py",
    "program/blocks/idioms.py": "program/blocks/test_x86_idioms.py",
    "program/blocks/code_symbols.py": "program/blocks/test_binary_functions.py",
    "profiles/afdo/format.py": "profiles/test_registry.py",
    "profiles/bolt/yaml/format.py": "profiles/bolt/test_tool.py",
    "profiles/linker/call_graph_order.py": "profiles/linker/test_linker_lists.py",
    "profiles/counts/format.py": "profiles/test_registry.py",
    "profiles/bolt/fdata/format.py": "profiles/test_registry.py",
    "profiles/llvm/format.py": "profiles/test_registry.py",
    "profiles/preaggregated/format.py": "profiles/test_registry.py",
    "profiles/propeller/format.py": "profiles/test_registry.py",
    "profiles/propeller/order_format.py": "profiles/test_registry.py",
    "profiles/linker/symbol_order.py": "profiles/linker/test_linker_lists.py",
    "profiles/unsymbolized/format.py": "profiles/test_registry.py",
    "profiles/afdo/written.py": "profiles/afdo/test_afdo.py",
    "profiles/llvm/contexts/context_profile.py": "profiles/llvm/contexts/test_nesting.py",
    "profiles/llvm/contexts/sizes.py": "profiles/llvm/contexts/test_preinliner.py",
    "profiles/work.py": "test_conversion.py",
    "profiles/llvm/located.py": "profiles/llvm/test_correlate.py",
    "profiles/llvm/counted_code.py": "profiles/llvm/test_correlate.py",
    "profiles/llvm/extbinary_reader.py": "profiles/llvm/test_extbinary.py",
    "profiles/llvm/stale_samples.py": "profiles/test_staleness.py",
    "profiles/counts/parquet_counts.py": "sources/test_parquet_counts.py",
    "program/code/aarch64.py": "program/code/test_instructions.py",
    "program/code/x86.py": "program/code/test_instructions.py",
    "program/code/x86_lengths.py": "program/code/test__x86_lengths.py",
    "program/elf/layout.py": "program/elf/test_image.py",
    "program/dwarf/frame.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/function.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/line.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/unit.py": "program/dwarf/test__units.py",
    "recorders/recording.py": "cli/test_record.py",
    "recorders/exact_streams.py": "recorders/test_plugin_flow.py",
    "recorders/perf_data_features.py": "recorders/test_perf_data_writer.py",
    "replay/replayed.py": "replay/test_recordings.py",
    "replay/replaying.py": "replay/test_recordings.py",
    "reports/exports/code_frames.py": "reports/exports/test_exports.py",
    "reports/exports/firefox.py": "reports/exports/test_exports.py",
    "reports/exports/parquet.py": "reports/exports/test_exports.py",
    "reports/exports/speedscope.py": "reports/exports/test_exports.py",
    "reports/checking.py": "cli/test_check.py",
    "reports/code_screen.py": "reports/test_browser.py",
    "reports/list_screen.py": "reports/test_browser.py",
    "reports/making.py": "cli/test_report.py",
    "reports/notebook.py": "reports/test_html.py",
    "reports/model.py": "reports/test_terminal.py",
    "sources/registers/dump_source.py": "sources/registers/test_intel_msr.py",
}
"""Parts of something that can only be judged whole, and the tests that do."""


def modules() -> list[str]:
    paths = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyx")]
    return sorted(str(path.relative_to(PACKAGE)) for path in paths if path.name != "__init__.py")


def has_doctest(module: str) -> bool:
    """Whether examples in it are run as tests; those in loops that are compiled are not."""
    path = PACKAGE / module
    return path.suffix == ".py" and any(
        ">>> " in (ast.get_docstring(node) or "")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    )


def own_test(module: str) -> Path:
    path = TESTS / module
    return path.with_name(f"test_{path.stem}.py")


def test_modules_have_tests_of_their_own_or_a_reason() -> None:
    wrong = []
    for module in modules():
        has_own = own_test(module).exists() or has_doctest(module)
        if has_own + (module in NOTHING_TO_TEST) + (module in TESTED_AS_A_WHOLE) != 1:
            wrong.append(f"{module}: {own_test(module).relative_to(ROOT)}, or a reason here")
    assert wrong == []


def test_the_lists_name_what_is_there() -> None:
    assert {*NOTHING_TO_TEST, *TESTED_AS_A_WHOLE} <= {*modules()}
    missing = {name for name in TESTED_AS_A_WHOLE.values() if not (TESTS / name).exists()}
    assert not missing
