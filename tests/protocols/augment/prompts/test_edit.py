"""A selection is rewritten as a whole, or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import BadRequest, UpstreamGarbled
from byok.core.events import FinishReason
from byok.protocols.augment.positions import INSERTION, lines
from byok.protocols.augment.prompts.edit import decode_edit, decode_instruction
from tests.fakes.jobs import PLAIN, STATE, events, streamed, texts, whole

BODY: dict[str, Any] = {
    "instruction": "raise an error",
    "prefix": "def f():\n",
    "selected_text": "    return 1\n",
    "suffix": "x = 2\n",
    "path": "a.py",
    "lang": "python",
}


def edited(answer: str, **body: Any) -> str:
    found: str = whole(decode_edit, {**BODY, **body}, events(*answer))["text"]
    return found


def test_edit_prompt_has_the_selection_its_surroundings_and_the_instruction() -> None:
    shown = texts(decode_edit(BODY, PLAIN, STATE).chat)
    places = [
        shown.index(part)
        for part in ("a.py", "def f()", "return 1", "x = 2", "raise an error")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["instruction", "edit_instruction", "message"])
def test_edit_instruction_has_several_field_names(name: str) -> None:
    body = {name: "raise", "selectedCode": "y"}
    shown = texts(decode_edit(body, PLAIN, STATE).chat)
    assert "raise" in shown
    assert "y" in shown


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("    raise X", "    raise X\n"),
        ("```python\n    raise X\n```", "    raise X\n"),
        ("    raise X\n\n", "    raise X\n\n"),
    ],
)
def test_edit_replaces_the_selection(answer: str, text: str) -> None:
    assert edited(answer) == text


def test_edit_keeps_the_line_endings_of_the_file() -> None:
    assert edited("a\nb", prefix="\r\n", selected_text="x", suffix="\r\n") == "a\r\nb"
    assert edited("a\nb\n", selected_text="x", suffix="") == "a\nb"


def test_edit_keeps_code_fences_in_markdown() -> None:
    assert edited("```py\nx\n```\n", path="a.md") == "```py\nx\n```\n"


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ("```\n```", FinishReason.STOP),
        ("    raise", FinishReason.LENGTH),
    ],
)
def test_edit_that_is_incomplete_is_an_error(answer: str, finish: FinishReason) -> None:
    with pytest.raises(UpstreamGarbled):
        whole(decode_edit, BODY, events(answer, finish=finish))


@pytest.mark.parametrize("wish", [None, "", " ", [], {}, True])
def test_edit_without_an_instruction_asks_nobody(wish: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        decode_edit({**BODY, "instruction": wish}, PLAIN, STATE)
    assert (caught.value.status, caught.value.code) == (422, "bad_field")


def test_edit_of_an_empty_selection_inserts() -> None:
    assert edited("y\n", selected_text="", selected_code="not this") == "y\n"
    shown = texts(decode_edit({**BODY, "selected_text": ""}, PLAIN, STATE).chat)
    assert "[the selection: empty]" in shown


@pytest.mark.parametrize("selected", ["    return 1\n", ""])
def test_edit_refused_by_the_model_replaces_nothing(selected: str) -> None:
    body = {**BODY, "selected_text": selected, "path": "a.py"}
    with pytest.raises(UpstreamGarbled, match="nothing was changed"):
        whole(decode_edit, body, events("Sorry, I can't help with that."))


# An instruction replaces lines of the whole file


TEXTS = st.text(alphabet="ab \t🚢\r\n", max_size=20)


def test_instruction_stream_counts_crlf_lines_once() -> None:
    body = {
        "instruction": "add a docstring",
        "prefix": "a\r\n\r\n\r\n",
        "selected_text": "def f():\r\n",
        "suffix": "    pass\r\n",
    }
    ran = streamed(
        decode_instruction, body, events("```py\nde", "f g():\n    'x'\n``", "`\n")
    )
    assert (ran.lines[0]["replacement_start_line"], ran.error) == (4, None)
    assert ran.lines[0]["replacement_end_line"] == 4
    assert ran.lines[0]["replacement_old_text"] == "def f():\r\n"
    assert ran.text == "def g():\r\n    'x'\r\n"
    assert all("`" not in line["text"] for line in ran.lines)


@given(TEXTS, TEXTS, TEXTS)
def test_instruction_stream_lines_applied_give_the_new_file(
    prefix: str, old: str, suffix: str
) -> None:
    body = {"instruction": "x", "prefix": prefix, "selected_text": old}
    ran = streamed(decode_instruction, {**body, "suffix": suffix}, events("new"))
    first = ran.lines[0]
    start, end = first["replacement_start_line"], first["replacement_end_line"]
    file = prefix + old + suffix
    whole = lines(file)
    shown = first["replacement_old_text"]
    new = "".join(line.get("replacement_text", "") for line in ran.lines)
    if shown.startswith(INSERTION):
        assert (start, old, new) == (end, "", "new")
        return
    place = len("".join(whole[: start - 1]))
    assert file[place:].startswith(shown)
    if prefix[-1:] != "\r" or old[:1] != "\n":
        assert len(lines(shown.rstrip("\r\n"))) <= end - start + 1
    changed = file[:place] + new + file[place + len(shown) :]
    ended = old.endswith(("\r", "\n"))
    text = changed[len(prefix) : len(changed) - len(suffix)]
    assert (changed[: len(prefix)], text.rstrip("\r\n")) == (prefix, "new")
    assert changed.endswith(suffix)
    assert (text != "new") == ended
