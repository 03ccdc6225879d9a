"""Answering from commits: what fits best, newest first, in the room there is."""

import pytest

from byok.search.index.types import Commit
from byok.search.retrieval.retriever import rank_commits, render_commits

DAY = 86_400


def commit(message: str, *files: str, time: int = DAY, touched: int = 0) -> Commit:
    return Commit("0123456789abcdef", time, message, files, touched or len(files))


FERRY = commit("Sell tickets for the ferry", "sales/counter.py")
PRICE = commit("Round prices", "ferry/prices.py")
OTHER = commit("Spelling", "README.md")


def test_commit_search_counts_words_of_messages_and_paths() -> None:
    assert rank_commits([OTHER, FERRY, PRICE], {"ferri": 1.0, "ticket": 1.0}) == [
        FERRY,
        PRICE,
    ]


def test_commit_search_weighs_rare_words_more() -> None:
    given = [commit("common"), commit("common"), commit("rare")]
    assert rank_commits(given, {"common": 1.0, "rare": 1.0})[0] == given[2]


def test_commit_search_prefers_the_newest_of_equals() -> None:
    newest, older = commit("lion", time=2 * DAY), commit("lion", time=DAY)
    assert rank_commits([newest, older], {"lion": 1.0}) == [newest, older]


def test_a_commit_is_shown_with_its_day_subject_and_files() -> None:
    text = render_commits([commit("Lion\n\nIt roars.", "a.py", touched=3)], 1000)
    assert text == (
        "The following commits were retrieved:\n"
        "Commit: 0123456789ab 1970-01-02 Lion\n"
        "    It roars.\n"
        "  a.py\n"
    )


def test_only_whole_commits_are_shown() -> None:
    assert render_commits([FERRY, PRICE], 120).count("Commit: ") == 1
    for limit in range(200):
        assert len(render_commits([FERRY, PRICE], limit)) <= limit


@pytest.mark.parametrize("time", [-1, 0, 2**40])
def test_commit_search_with_an_odd_date_and_name(time: int) -> None:
    text = render_commits([commit("a\x1b[31m", "new\nline", time=time)], 1000)
    assert "\x1b" not in text
    assert "  new\\nline\n" in text
    assert render_commits([commit("")], 1000).startswith("The following commits")


@pytest.mark.case("B116")
@pytest.mark.parametrize("above", ["", "Add the key\n\n", "Key:\n\n    "])
def test_commit_search_masks_a_private_key_over_several_lines(above: str) -> None:
    body = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 3
    lines = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", "It."]
    text = render_commits([commit(above + "\n".join(lines))], 2000)
    assert body[0] not in text
    assert text.count("[redacted]") == 3
    assert "    It.\n" in text
