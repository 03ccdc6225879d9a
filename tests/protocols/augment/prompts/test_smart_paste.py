"""Smart paste works a block into a file, or into what is selected of it."""

from typing import Any

import pytest

from byok.core.errors import BadRequest, UpstreamGarbled
from byok.protocols.augment.positions import INSERTION
from byok.protocols.augment.prompts.edit import decode_smart_paste
from tests.fakes.jobs import PLAIN, STATE, events, streamed

FILE = "a = 1\r\nb = 2\r\nc = 3\r\n"
BODY: dict[str, Any] = {
    "code_block": "b = 3\n",
    "target_file_path": "x.py",
    "target_file_content": FILE,
    "selected_text": "",
}


def pasted(answer: str, **body: Any) -> tuple[tuple[int, int, str], str]:
    ran = streamed(decode_smart_paste, {**BODY, **body}, events(*answer))
    assert ran.error is None
    first = ran.lines[0]
    place = tuple(
        first[f"replacement_{name}"] for name in ("start_line", "end_line", "old_text")
    )
    return place, ran.text


def test_smart_paste_without_a_selection_rewrites_the_file() -> None:
    place, text = pasted("```py\na = 1\nb = 3\nc = 3\n```")
    assert place == (1, 3, FILE)
    assert text == "a = 1\r\nb = 3\r\nc = 3\r\n"


def test_smart_paste_finds_a_selection_in_the_file() -> None:
    place, text = pasted("b = 3", selected_text="b = 2\n", prefix="a = 1\n")
    assert place == (2, 2, "b = 2\r\n")
    assert text == "b = 3\r\n"


def test_smart_paste_fills_an_empty_file() -> None:
    place, text = pasted("b = 3\n", target_file_content="", prefix="x", suffix="y")
    assert place == (1, 1, INSERTION)
    assert text == "b = 3\n"


def test_smart_paste_without_the_file_uses_the_text_around_the_cursor() -> None:
    place, _ = pasted("x", target_file_content=None, prefix="x\n", suffix="y")
    assert place == (1, 2, "x\ny")
    body = {**BODY, "target_file_content": None, "prefix": "y", "prefix_begin": 9}
    with pytest.raises(BadRequest, match="target_file_content"):
        decode_smart_paste(body, PLAIN, STATE)


@pytest.mark.parametrize("block", [None, "", " \n", [], {}])
def test_smart_paste_without_a_block_asks_nobody(block: Any) -> None:
    with pytest.raises(BadRequest, match="code_block"):
        decode_smart_paste({**BODY, "code_block": block}, PLAIN, STATE)


def test_remarks_behind_the_code_are_not_pasted() -> None:
    body = {
        "code_block": "x",
        "target_file_path": "a.py",
        "target_file_content": "def f():\n    return 1\n",
    }
    code = "def f():\n    return 2\n"
    answer = f"Sure! Here it is:\n\n```python\n{code}```\n\nI changed `f`.\n"
    assert streamed(decode_smart_paste, body, events(*answer)).text == code
    ran = streamed(decode_smart_paste, body, events("I'm sorry, but I can't do that."))
    assert isinstance(ran.error, UpstreamGarbled)
    assert ran.text == ""
