"""What a model is asked for a completion."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.augment.prompts.completion import decode, unused_mark
from byok.augment.reply_job import Defaults, ReplyFacts
from byok.chat import FimRequest, Role, Sampling
from tests.fakes.jobs import PLAIN, events, ignore, never_fails, texts, whole
from tests.fakes.linear import check_linear

BODY: dict[str, Any] = {
    "prompt": "import os\r\n\r\ndef fare(",
    "suffix": "):\r\n    return 1\r\n",
    "path": "ferry/fares.py",
    "lang": "python",
}


def fill_of(**body: Any) -> FimRequest:
    fill = decode({**BODY, **body}, PLAIN, ignore).chat.fim
    assert fill is not None
    return fill


def test_an_upstream_that_fills_gaps_gets_what_stands_around() -> None:
    head, tail = "import os\n\ndef fare(", "):\n    return 1\n"
    assert fill_of() == FimRequest(head, tail, one_line=True)
    assert fill_of(suffix="\r\n") == FimRequest(head, "\n")


def test_any_other_model_is_shown_the_marked_place() -> None:
    chat = decode(BODY, PLAIN, ignore).chat
    shown = texts(chat)
    assert "ferry/fares.py" in shown
    assert "def fare([[CURSOR]]):\n" in shown
    assert "[[CURSOR]]" in texts(chat, Role.SYSTEM)
    assert (chat.silent, chat.verbatim, chat.tools) == (True, True, ())


def test_recent_edits_are_shown() -> None:
    edit = {"after_line_start": 3, "before_text": "fee", "after_text": "fare"}
    shown = texts(
        decode(
            {**BODY, "edit_events": [{"path": "a.py", "edits": [edit]}]}, PLAIN, ignore
        ).chat
    )
    assert "'fee' → 'fare'" in shown


@pytest.mark.parametrize("name", ["prompt", "prefix"])
def test_the_text_before_has_two_names(name: str) -> None:
    body = {name: "def f(", "prompt" if name == "prefix" else "prefix": ""}
    assert fill_of(**body).prefix == "def f("


def test_a_window_begins_with_a_line_and_has_an_end() -> None:
    lines = "".join(f"line {n}\n" for n in range(2000))
    fill = fill_of(prompt=lines + "def f(", suffix=lines)
    assert 7900 <= len(fill.prefix) < 8000
    assert fill.prefix.startswith("line ")
    assert fill.prefix.endswith("line 1999\ndef f(")
    assert fill.suffix == lines[:4000]
    assert fill_of(prompt="x" * 9000).prefix == "x" * 8000


def test_while_a_line_is_typed_the_window_stays() -> None:
    lines = "".join(f"{'x' * 60} {n}\n" for n in range(2000))
    starts = {fill_of(prompt=lines + "y" * n).prefix[:70] for n in range(30)}
    assert len(starts) <= 2


@pytest.mark.parametrize(
    "body",
    [
        {"probe_only": True},
        {"probeOnly": 1},
        {"prompt": " \n", "suffix": "\n"},
        {"prompt": None, "suffix": None},
    ],
)
def test_where_nothing_is_to_be_completed_no_model_is_asked(
    body: dict[str, Any],
) -> None:
    asked = {**BODY, **body}
    assert decode(asked, PLAIN, ignore).chat.messages == ()
    assert whole(decode, asked, [])["completion_items"] == []


@pytest.mark.parametrize(
    ("asked", "most"),
    [(None, 256), (64, 64), (1000, 256), (0, 256), (-1, 256), ("32", 32), ("x", 256)],
)
def test_a_client_may_want_less_than_the_user(asked: Any, most: int) -> None:
    defaults = Defaults(sampling=Sampling(max_tokens=256))
    chat = decode({**BODY, "max_tokens": asked}, defaults, ignore).chat
    assert chat.sampling.max_tokens == most


def test_the_answer_fits_at_the_cursor() -> None:
    said = events("def fare(kind", "):\n", "more")
    assert whole(decode, BODY, said)["text"] == "kind"


def test_fences_of_markdown_are_kept_in_markdown() -> None:
    body = {"prompt": "Say:\n\n", "path": "a.md"}
    found = whole(decode, body, events("```sh\nls\n```"))
    assert found["text"] == "```sh\nls\n```"
    code = whole(decode, {**body, "path": "a.sh"}, events("```sh\nls\n```"))
    assert code["text"] == "ls"


@given(st.text("[]CURSO", max_size=40))
def test_a_mark_is_nowhere_else(code: str) -> None:
    mark = unused_mark("CURSOR", code)
    assert mark not in code
    assert "[[CURSOR]]" in mark


def test_a_mark_is_found_soon_even_where_all_short_ones_stand() -> None:
    check_linear(
        lambda size: unused_mark("CURSOR", "[" * size + "CURSOR" + "]" * size), 9000
    )


def test_of_a_path_without_end_no_more_is_kept_than_tells_files_apart() -> None:
    reply = decode({**BODY, "path": "x" * 1_000_000 + "/a.py"}, PLAIN, ignore).reply
    path = reply(ReplyFacts("r")).cursor.path
    assert path.endswith("/a.py")
    assert len(path) < 10_000


@pytest.mark.parametrize("odd", [None, 7, -1, [], ["x"], {"x": 1}, "\ud800", "a\x00b"])
def test_no_field_of_any_kind_is_a_fault(odd: Any) -> None:
    for name in (*BODY, "prefix", "probe_only", "max_tokens", "edit_events", "blobs"):
        never_fails(decode, {**BODY, name: odd})


@pytest.mark.parametrize(
    "answer",
    [
        "Here is the completion:\nkm",
        "Sure! Here's the completion:\n\n```python\nkm\n```\nIt is short.",
        "```python\nkm\n```\nIt takes kilometers.",
    ],
)
def test_a_models_remarks_are_not_shown(answer: str) -> None:
    assert whole(decode, BODY, events(*answer))["text"] == "km"
    assert whole(decode, BODY, events("Here is the completion:"))["text"] == ""
