"""What was said when files changed, and which changed together."""

import random

import pytest

from byok.search.index.types import Commit, CommitHistory
from byok.search.retrieval.query import parse_query
from byok.search.retrieval.ranker import HistorySignals, JoinedSignals
from tests.fakes.commits import history


def scores(signals: HistorySignals | JoinedSignals, text: str) -> dict[str, float]:
    return signals.text_scores(parse_query(text).terms)


def test_history_signal_finds_a_file_by_the_words_of_its_commits() -> None:
    signals = HistorySignals(
        history(("retry on timeout", "a.py"), ("colour", "b.py")), "ab"
    )
    assert scores(signals, "retry") == {}
    signals = HistorySignals(
        history(("retry on timeout", "a.py"), ("colour", "b.py")), ["a.py", "b.py"]
    )
    assert list(scores(signals, "the timeouts")) == ["a.py"]


def test_history_signal_of_a_commit_of_few_files_is_stronger() -> None:
    signals = HistorySignals(
        history(("retry", "a"), ("retry", "b c d e")), ["a", "b", "c", "d", "e", "f"]
    )
    found = scores(signals, "retry")
    assert found["a"] > found["b"] == found["c"]


def test_history_signal_ignores_files_that_are_gone() -> None:
    commits = history(("retry", "a gone"), ("retry", "gone"))
    signals = HistorySignals(commits, ["a"])
    assert set(scores(signals, "retry")) == {"a"}
    assert signals.cochange({"a": 1.0, "gone": 1.0}) == {}


def test_history_signal_ignores_a_commit_of_too_many_files() -> None:
    large = Commit("0" * 40, 0, "retry", ("a", "b"), 31)
    signals = HistorySignals(CommitHistory("0" * 40, (large,)), ["a", "b"])
    assert scores(signals, "retry") == {}
    assert signals.cochange({"a": 1.0}) == {}


def test_history_signal_ignores_task_words_of_messages() -> None:
    signals = HistorySignals(history(("fix the file", "a")), ["a"])
    assert scores(signals, "fix the file") == {}


def test_history_signal_weighs_rare_and_important_words_more() -> None:
    commits = [("common", f"f{n}") for n in range(9)]
    signals = HistorySignals(
        history(*commits, ("common", "a"), ("rare", "b")),
        ["a", "b", *(f"f{n}" for n in range(9))],
    )
    found = scores(signals, "common rare")
    assert found["b"] > found["a"]
    half = signals.text_scores({"rare": 0.5})
    assert half["b"] == pytest.approx(signals.text_scores({"rare": 1.0})["b"] / 2)


def test_history_signal_passes_a_tenth_on_to_files_changed_together() -> None:
    signals = HistorySignals(
        history(("x", "a b"), ("x", "a b"), ("x", "a c"), ("x", "d")), "abcd"
    )
    found = signals.cochange({"a": 3.0, "d": 5.0, "unknown": 9.0})
    assert found == pytest.approx({"b": 0.2, "c": 0.1})


def test_history_signal_gains_of_several_files_add_up() -> None:
    signals = HistorySignals(history(("x", "a c"), ("x", "b c")), "abc")
    assert signals.cochange({"a": 1.0, "b": 1.0}) == pytest.approx({"c": 0.2})


def test_a_history_of_nothing_says_nothing() -> None:
    signals = HistorySignals(history(), ["a"])
    assert scores(signals, "retry") == {}
    assert signals.cochange({"a": 1.0}) == {}


def test_joined_signals_speak_of_whole_paths() -> None:
    one = HistorySignals(history(("retry", "a b")), ["a", "b"])
    two = HistorySignals(history(("retry", "a c")), ["a", "c"])
    joined = JoinedSignals({"one/": one, "two/": two})
    assert set(scores(joined, "retry")) == {"one/a", "one/b", "two/a", "two/c"}
    assert joined.cochange({"one/a": 1.0}) == pytest.approx({"one/b": 0.1})
    assert JoinedSignals({"": one}).cochange({"a": 1.0}) == one.cochange({"a": 1.0})
    assert scores(JoinedSignals({}), "retry") == {}


def test_history_signal_gain_never_exceeds_what_was_passed_on() -> None:
    draw = random.Random(7)
    names = [f"f{n}" for n in range(12)]
    commits = [
        ("w", " ".join(draw.sample(names, draw.randint(1, 6)))) for _ in range(60)
    ]
    signals = HistorySignals(history(*commits), names)
    top = {name: draw.random() for name in names[:5]}
    assert sum(signals.cochange(top).values()) == pytest.approx(sum(top.values()) / 10)
