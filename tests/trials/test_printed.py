"""Files that are printed into the chat, and code that is only quoted."""

import pytest

from byok.trials.printed import count_printed, fenced_blocks
from tests.fakes.linear import check_linear

FILE = "".join(f"line {n}\n" for n in range(10))


def block(lines: str, fence: str = "```") -> str:
    return f"Look:\n{fence}python\n{lines}{fence}\nDone.\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (FILE, 0),
        (block(FILE), 1),
        (block(FILE) * 2, 2),
        (block(FILE, "~~~"), 1),
        (block(FILE, "````"), 1),
        (block(FILE.replace("line 3", "changed")), 1),
        (block("".join(FILE.splitlines(keepends=True)[:6])), 1),
        (block("".join(FILE.splitlines(keepends=True)[:5])), 0),
        (block("".join(f"    {n:2}\tline {n}\n" for n in range(10))), 1),
        (block("other\n" * 31), 1),
        (block("other\n" * 30), 0),
        (f"```\n{FILE}", 1),
        (block("a\nb\n"), 0),
        ("`line 1`", 0),
        ("", 0),
    ],
)
def test_a_printed_file_is_counted(text: str, count: int) -> None:
    assert count_printed([text], {"a.py": FILE, "tiny.py": "a\nb\n"}) == count


def test_the_file_before_and_the_file_after_count_alike() -> None:
    after = FILE.replace("line", "row")
    texts = [block(FILE), block(after), block("x\n" * 5)]
    assert count_printed(texts, {"a.py": FILE}, {"a.py": after}) == 2


def test_a_fence_inside_a_longer_one_belongs_to_the_block() -> None:
    text = "````md\n```\nx\n```\n````\nafter\n"
    assert [*fenced_blocks(text)] == [["```", "x", "```"]]


def test_blocks_without_end_are_counted_up_to_a_limit() -> None:
    assert count_printed([block(FILE) * 600], {"a.py": FILE}) == 500


def test_counting_takes_linear_time() -> None:
    def run(size: int) -> None:
        count_printed(["```\nx\n" * size], {"a.py": FILE})

    check_linear(run, 20_000)
