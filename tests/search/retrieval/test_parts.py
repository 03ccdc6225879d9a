"""Questions that ask several things at once are answered one by one."""

import time

import pytest

from byok.search.index.store.chunk_index import ChunkScore
from byok.search.index.types import Kind
from byok.search.retrieval.parts import join_rankings, split_parts
from byok.search.retrieval.rank import RankedFile, Reasons


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "1. How are redirects followed?\n2. list of codes\n\nThanks for the help",
            ["How are redirects followed?", "list of codes"],
        ),
        (
            "Tell me about\n- the router tree\n- and the rate limits\n",
            ["the router tree", "and the rate limits"],
        ),
        (
            "1) real ip headers 2) pools of encoders (3) url parameters",
            ["real ip headers", "pools of encoders", "url parameters"],
        ),
        (
            "Explain how chains are built. It is urgent. Where is auth? Who is root?",
            ["Explain how chains are built.", "Where is auth?", "Who is root?"],
        ),
        (
            "I need to know: where timeouts are set, and how forms are sent and how "
            "they are read",
            ["where timeouts are set", "how forms are sent how they are read"],
        ),
        (
            "Where is JSON written, where are sinks made, and what reports failures?",
            [
                "Where is JSON written",
                "where are sinks made",
                "what reports failures?",
            ],
        ),
        ("登录在哪里实现？会话如何保存？", ["登录在哪里实现？", "会话如何保存？"]),
        ("who calls parse_header and where is it defined", []),
        ("where is the cache, which keeps tokens, cleared", []),
        ("Speed up the parser, which was slow, and what uses it", []),
        ("how does the client retry", []),
        ("- [ ] I added tests\n- [x] I ran the linter\nwhere is auth?", []),
        ("?? ? ?", []),
        ("", []),
    ],
)
def test_question_is_split_into_what_it_asks(text: str, parts: list[str]) -> None:
    assert split_parts(text) == parts


def test_very_many_parts_become_six() -> None:
    found = split_parts("\n".join(f"{n}. how is thing{n} made" for n in range(1, 31)))
    assert len(found) == 6
    assert "thing6" in found[-1]
    assert "thing30" in found[-1]


@pytest.mark.parametrize(
    "text",
    [
        "1) a b " * 20_000,
        "how a, " * 20_000,
        "? a b" * 20_000,
        "\n- a" * 20_000,
        "a" * 99_999,
    ],
)
def test_question_is_split_in_linear_time(text: str) -> None:
    began = time.process_time()
    split_parts(text)
    assert time.process_time() - began < 2


def ranked(path: str, score: float, *chunks: float) -> RankedFile:
    return RankedFile(
        1,
        path,
        Kind.CODE,
        score,
        tuple(ChunkScore(1, n, chunk) for n, chunk in enumerate(chunks)),
        Reasons(score, 0, 0, 1, 0),
    )


def test_best_file_of_each_part_is_as_good_as_that_of_any_other() -> None:
    one = [ranked("a", 40, 20, 10), ranked("b", 10, 5)]
    two = [ranked("c", 2, 1), ranked("a", 1, 1, 1)]
    joined = join_rankings([one, two], [ranked("d", 7, 3)])
    assert [(file.path, file.score) for file in joined] == [
        ("a", 1.0), ("c", 1.0), ("d", 0.9), ("b", 0.25),
    ]  # fmt: skip
    assert [chunk.score for chunk in joined[0].chunks] == [1.0, 0.5]
