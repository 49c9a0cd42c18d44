from lbr2pgo.profiles.llvm.sample_names import Frame
from lbr2pgo.profiles.llvm.sample_profile import DUPLICATED_INTO_BASE, SampleProfile
from lbr2pgo.profiles.llvm.sample_summary import CUTOFFS, Cutoff, summarize


def test_an_empty_profile():
    summary = summarize(SampleProfile())
    assert (summary.total_count, summary.max_count, summary.functions) == (0, 0, 0)
    assert summary.detailed == tuple(Cutoff(cutoff, 0, 0) for cutoff in CUTOFFS)


def test_largest_counts_come_first():
    profile = SampleProfile()
    function = profile.function("f")
    function.head = 3
    for line, count in enumerate([80, 10, 5, 5]):
        function.add_body((line, 0), count)
    summary = summarize(profile)
    assert (summary.total_count, summary.max_count, summary.counts) == (100, 80, 4)
    assert (summary.max_function_count, summary.functions) == (3, 1)
    rows = {cutoff: (minimum, counts) for cutoff, minimum, counts in summary.detailed}
    assert rows[10_000] == (80, 1)
    assert rows[800_000] == (80, 1)
    assert rows[900_000] == (10, 2)
    assert rows[950_000] == (5, 4)  # equal counts come together
    assert rows[999_999] == (5, 4)


def test_inlined_copies_count_unless_their_base_has_them():
    profile = SampleProfile()
    function = profile.function("f")
    function.add_body((1, 0), 7)
    function.callee((2, 0), "g").add_body((1, 0), 5)
    assert summarize(profile).total_count == 12
    function.callee((2, 0), "g").attributes = DUPLICATED_INTO_BASE
    assert summarize(profile).total_count == 7


def test_contexts_of_a_function_are_added_up():
    profile = SampleProfile(is_cs=True)
    for line in (1, 2):
        function = profile.function((Frame("main", (line, 0)), Frame("f")))
        function.add_body((1, 0), 6)
        function.head = 2
    summary = summarize(profile)
    assert (summary.functions, summary.counts, summary.max_count) == (1, 1, 12)
    assert summary.max_function_count == 4


def test_calls_without_a_count_are_a_count_of_nothing():
    profile = SampleProfile()
    profile.function("f").add_call((1, 0), "g", 5)
    assert summarize(profile).counts == 1
