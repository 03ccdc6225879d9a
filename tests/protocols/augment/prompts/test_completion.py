"""What a model is asked for a completion."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import FimRequest, Role, Sampling
from byok.protocols.augment.prompts.completion import decode, unused_mark
from byok.protocols.augment.reply_job import Defaults
from tests.fakes.jobs import PLAIN, events, texts, whole

BODY: dict[str, Any] = {
    "prompt": "import os\r\n\r\ndef fare(",
    "suffix": "):\r\n    return 1\r\n",
    "path": "ferry/fares.py",
    "lang": "python",
}


def fill_of(**body: Any) -> FimRequest:
    fill = decode({**BODY, **body}, PLAIN).chat.fim
    assert fill is not None
    return fill


def test_completion_prompt_for_fim_has_prefix_and_suffix() -> None:
    head, tail = "import os\n\ndef fare(", "):\n    return 1\n"
    assert fill_of() == FimRequest(head, tail, one_line=True)
    assert fill_of(suffix="\r\n") == FimRequest(head, "\n")


def test_completion_prompt_for_chat_marks_the_cursor() -> None:
    chat = decode(BODY, PLAIN).chat
    shown = texts(chat)
    assert "ferry/fares.py" in shown
    assert "def fare([[CURSOR]]):\n" in shown
    assert "[[CURSOR]]" in texts(chat, Role.SYSTEM)
    assert (chat.silent, chat.verbatim, chat.tools) == (True, True, ())


def test_completion_prompt_has_recent_edits() -> None:
    edit = {"after_line_start": 3, "before_text": "fee", "after_text": "fare"}
    shown = texts(
        decode({**BODY, "edit_events": [{"path": "a.py", "edits": [edit]}]}, PLAIN).chat
    )
    assert "'fee' → 'fare'" in shown


def test_completion_window_begins_with_a_line_and_is_limited() -> None:
    lines = "".join(f"line {n}\n" for n in range(2000))
    fill = fill_of(prompt=lines + "def f(", suffix=lines)
    assert 7900 <= len(fill.prefix) < 8000
    assert fill.prefix.startswith("line ")
    assert fill.prefix.endswith("line 1999\ndef f(")
    assert fill.suffix == lines[:4000]
    assert fill_of(prompt="x" * 9000).prefix == "x" * 8000


def test_completion_window_is_stable_while_a_line_is_typed() -> None:
    lines = "".join(f"{'x' * 60} {n}\n" for n in range(2000))
    starts = {fill_of(prompt=lines + "y" * n).prefix[:70] for n in range(30)}
    assert len(starts) <= 2


@pytest.mark.parametrize(
    "body",
    [
        {"probe_only": True},
        {"prompt": " \n", "suffix": "\n"},
        {"prompt": None, "suffix": None},
    ],
)
def test_completion_of_nothing_asks_no_model(
    body: dict[str, Any],
) -> None:
    asked = {**BODY, **body}
    assert decode(asked, PLAIN).chat.messages == ()
    assert whole(decode, asked, [])["completion_items"] == []


@pytest.mark.parametrize(
    ("asked", "most"),
    [(None, 256), (64, 64), (1000, 256), (0, 256), (-1, 256), ("32", 32), ("x", 256)],
)
def test_completion_length_may_be_lowered_by_the_client(asked: Any, most: int) -> None:
    defaults = Defaults(sampling=Sampling(max_tokens=256))
    chat = decode({**BODY, "max_tokens": asked}, defaults).chat
    assert chat.sampling.max_tokens == most


def test_completion_fits_at_the_cursor() -> None:
    said = events("def fare(kind", "):\n", "more")
    assert whole(decode, BODY, said)["text"] == "kind"


def test_completion_keeps_code_fences_in_markdown() -> None:
    body = {"prompt": "Say:\n\n", "path": "a.md"}
    found = whole(decode, body, events("```sh\nls\n```"))
    assert found["text"] == "```sh\nls\n```"
    code = whole(decode, {**body, "path": "a.sh"}, events("```sh\nls\n```"))
    assert code["text"] == "ls"


@given(st.text("[]CURSO", max_size=40))
def test_completion_mark_is_unique(code: str) -> None:
    mark = unused_mark(code)
    assert mark not in code
    assert "[[CURSOR]]" in mark


def test_completion_drops_the_models_remarks() -> None:
    answer = "Sure! Here's the completion:\n\n```python\nkm\n```\nIt is short."
    assert whole(decode, BODY, events(*answer))["text"] == "km"
    assert whole(decode, BODY, events("Here is the completion:"))["text"] == ""
