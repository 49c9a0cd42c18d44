"""Tests stand where their module does: `lbr2pgo/a/b.py` has `tests/a/test_b.py`, or a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "lbr2pgo", Path(__file__).parent

NOTHING_TO_TEST = {
    "model/perf_abi.py": "numbers and structs of perf's",
    "native/bits.pyx": "numbers that loops and modules share",
    "native/perf_abi.pyx": "the same",
    "profiles/llvm/extbinary_layout.py": "numbers of the format",
    "profiles/bolt/edges.py": "columns of a table",
    "program/code/architecture.py": "records of what an architecture is",
    "reports/assets/refresh.py": "run by hand when a library's version is to change",
    "support/arrays.py": "names of types",
}
"""Modules that do nothing, and what they hold."""

TESTED_AS_A_WHOLE = {
    "__main__.py": "cli/test_main.py",
    "analyses/code_profile.py": "reports/exports/test_exports.py",
    "analyses/evidence.py": "reports/test_gather.py",
    "analyses/flow_graph.py": "analyses/test_chains.py",
    "build/options.py": "build/test_loop.py",
    "build/post_link.py": "test_examples.py",
    "build/variants.py": "build/test_search.py",
    "build/workplace.py": "build/test_loop.py",
    "cli/reporting.py": "cli/test_report.py",
    "contexts/code.py": "contexts/test_unwind.py",
    "contexts/recordings.py": "profiles/formats/test_llvm_contexts.py",
    "evidence/collector.py": "reports/test_gather.py",
    "fleet/counting.py": "fleet/test_fleet.py",
    "fleet/inputs.py": "fleet/test_fleet.py",
    "fleet/runners.py": "fleet/test_fleet.py",
    "native/brstack_lines.pyx": "native/test_brstack_samples.py",
    "native/context_samples.pyx": "profiles/llvm/contexts/test_lines.py",
    "profiles/bolt/context.py": "profiles/bolt/test_blocks.py",
    "profiles/bolt/fdata_sums.py": "profiles/bolt/test_fdata.py",
    "profiles/bolt/fdata_tables.py": "profiles/bolt/test_fdata.py",
    "profiles/bolt/idioms.py": "profiles/bolt/test_x86_idioms.py",
    "profiles/bolt/symbols.py": "profiles/bolt/test_functions.py",
    "profiles/formats/afdo.py": "profiles/formats/test_formats.py",
    "profiles/formats/bolt_yaml.py": "profiles/bolt/test_tool.py",
    "profiles/formats/call_graph_order.py": "profiles/test_linker_lists.py",
    "profiles/formats/counts.py": "profiles/formats/test_formats.py",
    "profiles/formats/fdata.py": "profiles/formats/test_formats.py",
    "profiles/formats/llvm.py": "profiles/formats/test_formats.py",
    "profiles/formats/preaggregated.py": "profiles/formats/test_formats.py",
    "profiles/formats/propeller.py": "profiles/formats/test_formats.py",
    "profiles/formats/propeller_order.py": "profiles/formats/test_formats.py",
    "profiles/formats/symbol_order.py": "profiles/test_linker_lists.py",
    "profiles/formats/unsymbolized.py": "profiles/formats/test_formats.py",
    "profiles/gcc/functions.py": "profiles/gcc/test_samples.py",
    "profiles/gcc/first_seen.py": "profiles/gcc/test_samples.py",
    "profiles/gcc/written.py": "profiles/gcc/test_afdo.py",
    "profiles/llvm/contexts/keys.py": "profiles/llvm/contexts/test_lines.py",
    "profiles/llvm/contexts/profile.py": "profiles/llvm/contexts/test_nesting.py",
    "profiles/llvm/contexts/samples.py": "profiles/llvm/contexts/test_lines.py",
    "profiles/llvm/contexts/sizes.py": "profiles/llvm/contexts/test_preinliner.py",
    "profiles/llvm/counted_code.py": "profiles/llvm/test_correlate.py",
    "profiles/llvm/extbinary_reader.py": "profiles/llvm/test_extbinary.py",
    "profiles/llvm/extbinary_writer.py": "profiles/llvm/test_extbinary.py",
    "profiles/llvm/probe_functions.py": "profiles/llvm/test_probe_profile.py",
    "profiles/parquet_counts.py": "sources/test_parquet_counts.py",
    "profiles/propeller/layout.py": "profiles/propeller/test_files.py",
    "program/code/aarch64.py": "program/code/test_instructions.py",
    "program/code/x86.py": "program/code/test_instructions.py",
    "program/code/x86_lengths.py": "native/test_x86_lengths.py",
    "program/dwarf/frame.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/function.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/line.py": "program/dwarf/test_debug_info.py",
    "program/dwarf/unit.py": "native/test_dwarf_units.py",
    "program/elf/call_frames.py": "native/test_call_frames.py",
    "program/jit/program.py": "replay/test_jit.py",
    "record/exact_streams.py": "record/test_plugin_flow.py",
    "record/perf_data_features.py": "record/test_perf_data_writer.py",
    "reports/exports/code.py": "reports/exports/test_exports.py",
    "reports/exports/firefox.py": "reports/exports/test_exports.py",
    "reports/exports/parquet.py": "reports/exports/test_exports.py",
    "reports/exports/speedscope.py": "reports/exports/test_exports.py",
    "reports/lines.py": "cli/test_report.py",
    "reports/model.py": "reports/test_terminal.py",
    "reports/page.py": "reports/test_html.py",
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


@pytest.mark.parametrize("module", modules())
def test_a_module_has_tests_of_its_own_or_a_reason(module: str) -> None:
    has_own = own_test(module).exists() or has_doctest(module)
    listed = (module in NOTHING_TO_TEST) + (module in TESTED_AS_A_WHOLE)
    assert has_own + listed == 1, f"give it {own_test(module).relative_to(ROOT)}, or a reason here"


def test_the_lists_name_what_is_there() -> None:
    assert {*NOTHING_TO_TEST, *TESTED_AS_A_WHOLE} <= {*modules()}
    missing = {name for name in TESTED_AS_A_WHOLE.values() if not (TESTS / name).exists()}
    assert not missing
