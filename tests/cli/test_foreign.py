"""Words of other tools lead to ours."""

from __future__ import annotations

import argparse

import pytest

from lbr2pgo.cli import _parser, foreign


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["annotate", "perf.data"], "lbr2pgo report PROFILE --function F"),
        (["script"], "lbr2pgo dump stacks PROFILE"),
        (["mem", "record"], "mem is perf's alone: it is about memory accesses"),
        (["c2c"], "c2c is perf's alone: it is about memory accesses"),
        (["inject", "-b"], "give what it writes to lbr2pgo convert or report"),
        (["convert", "perf.data", "-o", "out"], "-o is perf's; here each output has its option"),
        (["convert", "--perfdata=perf.data", "--binary", "x"], "lbr2pgo convert perf.data"),
        (["report", "perf.data", "--format", "html"], "a page is written by --html OUT"),
        (["report", "-i", "perf.data"], "files stand without an option"),
        (["check", "-i", "perf.data"], "files stand without an option"),
        (["report", "perf.data", "--percent-limit", "1"], "here --top N"),
        (["record", "-e", "cycles", "--", "true"], "the one that lbr2pgo doctor names"),
        (["record", "--call-graph=lbr", "--", "true"], "--call-graph takes no kind here"),
        (["record", "--call-graph", "lbr", "--", "true"], "--call-graph takes no kind here"),
        (["convert", "perf.data", "--format=extbinary"], "--llvm-format text, or extbinary"),
        (["convert", "perf.data", "--show-density"], "is llvm-profgen's; here convert says it"),
        (["convert", "perf.data", "--use-offset"], "here nothing: addresses are"),
    ],
)
def test_words_of_perf_and_llvm_profgen_lead_to_ours(command, words: list[str], says: str) -> None:
    answer = command(*words)
    assert answer.code == 2
    assert says in answer.err
    assert len(answer.err.splitlines()) == 2


def test_no_option_of_ours_is_called_foreign() -> None:
    whole = _parser()
    (commands,) = (a.choices for a in whole._actions if isinstance(a, argparse._SubParsersAction))
    for word, here in foreign.OPTIONS.items():
        for name in here:
            assert word not in commands[name]._option_string_actions or name == "record"
    assert not {*foreign.VERBS, *foreign.ELSEWHERE} & set(commands)
    for told in foreign.VERBS.values():
        assert told.split()[1] in commands
