"""A selection is rewritten as a whole, or not at all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import BadRequest, UpstreamGarbled
from byok.core.events import FinishReason
from byok.protocols.augment.positions import INSERTION, lines
from byok.protocols.augment.prompts.edit import (
    cut_file,
    decode_edit,
    decode_edit_file,
    decode_instruction,
    decode_smart_paste,
    selection_region,
)
from tests.fakes.jobs import PLAIN, events, streamed, texts, whole

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
    shown = texts(decode_edit(BODY, PLAIN).chat)
    places = [
        shown.index(part)
        for part in ("a.py", "def f()", "return 1", "x = 2", "raise an error")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["instruction", "edit_instruction", "message"])
def test_edit_instruction_has_several_field_names(name: str) -> None:
    body = {name: "raise", "selectedCode": "y"}
    shown = texts(decode_edit(body, PLAIN).chat)
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
        decode_edit({**BODY, "instruction": wish}, PLAIN)
    assert (caught.value.status, caught.value.code) == (422, "bad_field")


def test_edit_of_an_empty_selection_inserts() -> None:
    assert edited("y\n", selected_text="", selected_code="not this") == "y\n"
    shown = texts(decode_edit({**BODY, "selected_text": ""}, PLAIN).chat)
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


# Where a selection stands in its file


FILE = "".join(f"line {n}\r\n" for n in range(1, 21))
REGION_BODY: dict[str, Any] = {
    "prefix": "line 9\nline 10\n",
    "selected_text": "line 11\n",
    "suffix": "line 12\n",
    "prefix_begin": 77,
}


def test_edit_region_finds_a_cut_prefix_in_the_file() -> None:
    found = selection_region({**REGION_BODY, "target_file_content": FILE})
    assert (found.start, found.end) == (11, 11)


def test_edit_region_finds_a_selection_whose_surroundings_changed() -> None:
    body = {**REGION_BODY, "prefix": "line 9!\n", "target_file_content": FILE}
    assert selection_region(body).start == 11


def test_edit_region_of_an_insertion_in_a_cut_file_names_the_line_before() -> None:
    body = {**REGION_BODY, "selected_text": "", "suffix": "line 11\n"}
    found = selection_region({**body, "target_file_content": FILE})
    assert (found.start, found.end) == (11, 11)
    assert found.shown == f"{INSERTION}line 10"


@pytest.mark.parametrize("file", [None, "other", 7])
def test_edit_region_does_not_invent_line_numbers(file: Any) -> None:
    with pytest.raises(BadRequest) as caught:
        selection_region({**REGION_BODY, "target_file_content": file})
    assert (caught.value.status, caught.value.code) == (422, "file_start_unknown")


def test_edit_region_wants_the_file_where_its_beginning_is_missing() -> None:
    assert cut_file({**REGION_BODY, "blob_name": "b"}) == "b"
    assert cut_file({**REGION_BODY, "blob_name": None}) == ""
    assert cut_file({**REGION_BODY, "blob_name": "b", "prefix_begin": 0}) == ""
    assert cut_file({**REGION_BODY, "blob_name": "b", "target_file_content": ""}) == ""


# Smart paste works a block into a file, or into what is selected of it


PASTE_FILE = "a = 1\r\nb = 2\r\nc = 3\r\n"
PASTE_BODY: dict[str, Any] = {
    "code_block": "b = 3\n",
    "target_file_path": "x.py",
    "target_file_content": PASTE_FILE,
    "selected_text": "",
}


def pasted(answer: str, **body: Any) -> tuple[tuple[int, int, str], str]:
    ran = streamed(decode_smart_paste, {**PASTE_BODY, **body}, events(*answer))
    assert ran.error is None
    first = ran.lines[0]
    place = tuple(
        first[f"replacement_{name}"] for name in ("start_line", "end_line", "old_text")
    )
    return place, ran.text


def test_smart_paste_without_a_selection_rewrites_the_file() -> None:
    place, text = pasted("```py\na = 1\nb = 3\nc = 3\n```")
    assert place == (1, 3, PASTE_FILE)
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
    body = {**PASTE_BODY, "target_file_content": None, "prefix": "y", "prefix_begin": 9}
    with pytest.raises(BadRequest, match="target_file_content"):
        decode_smart_paste(body, PLAIN)


@pytest.mark.parametrize("block", [None, "", " \n", [], {}])
def test_smart_paste_without_a_block_asks_nobody(block: Any) -> None:
    with pytest.raises(BadRequest, match="code_block"):
        decode_smart_paste({**PASTE_BODY, "code_block": block}, PLAIN)


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


# A file is changed as a whole; after any failure it is as it was


FILE_BODY: dict[str, Any] = {
    "file_path": "a.py",
    "edit_summary": "rename",
    "detailed_edit_description": "x becomes y",
    "file_contents": "x = 1\r\n",
}


def test_the_new_contents_have_the_files_line_ends() -> None:
    found = whole(decode_edit_file, FILE_BODY, events("```py\ny = 1\nz\n```"))
    assert found == {"modified_file_contents": "y = 1\r\nz\r\n", "is_error": False}


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ("", FinishReason.STOP),
        ("y = ", FinishReason.LENGTH),
        ("y = ", FinishReason.CONTENT_FILTER),
    ],
)
def test_edit_file_failure_leaves_the_contents_unchanged(
    answer: str, finish: FinishReason
) -> None:
    found = whole(decode_edit_file, FILE_BODY, events(answer, finish=finish))
    assert found["modified_file_contents"] == "x = 1\r\n"
    assert found["is_error"] is True
    assert found["error_message"]


def test_an_empty_file_is_a_file() -> None:
    body = {**FILE_BODY, "file_contents": ""}
    found = whole(decode_edit_file, body, events("y\n"))
    assert found == {"modified_file_contents": "y\n", "is_error": False}


@pytest.mark.parametrize(
    ("fields", "contents"),
    [
        ({"file_contents": None}, ""),
        ({"file_contents": 7}, ""),
        ({"edit_summary": "", "detailed_edit_description": None}, "x = 1\r\n"),
    ],
)
def test_edit_file_without_its_fields_asks_nobody(
    fields: dict[str, Any], contents: str
) -> None:
    body = {**FILE_BODY, **fields}
    assert decode_edit_file(body, PLAIN).chat.messages == ()
    found = whole(decode_edit_file, body, [])
    assert (found["modified_file_contents"], found["is_error"]) == (contents, True)
    assert "is missing" in found["error_message"]


OLD = "def f():\n    return 1\n"
NEW = "def f():\n    return 2\n"
FENCED = f"```python\n{NEW}```"


@pytest.mark.parametrize(
    "answer",
    [
        f"Here is the updated file:\n\n{FENCED}\n\nI changed `f`.",
        f"x -> y, as f(x)=2\n{FENCED}\nx -> y\n",
    ],
)
def test_a_models_remarks_never_reach_the_file(answer: str) -> None:
    body = {**FILE_BODY, "file_contents": OLD}
    found = whole(decode_edit_file, body, events(answer))
    assert found == {"modified_file_contents": NEW, "is_error": False}


@pytest.mark.parametrize(
    "answer",
    [
        "I have updated the function as you described.",
        f"x -> y, as f(x)=2\n{FENCED}\nand\n{FENCED}",
    ],
)
@pytest.mark.parametrize("contents", [OLD, OLD * 3])
def test_words_in_place_of_the_file_leave_it_as_it_was(
    answer: str, contents: str
) -> None:
    body = {**FILE_BODY, "file_contents": contents}
    found = whole(decode_edit_file, body, events(answer))
    assert found["modified_file_contents"] == contents
    assert found["is_error"] is True
    assert "nothing was changed" in found["error_message"]


def test_a_file_is_not_replaced_by_one_without_a_line_of_it() -> None:
    contents = "# Notes\n\nOne.\n\nTwo.\n"
    body = {**FILE_BODY, "file_path": "notes.md", "file_contents": contents}
    found = whole(decode_edit_file, body, events("I added a third note to it."))
    assert (found["modified_file_contents"], found["is_error"]) == (contents, True)
    answer = contents + "\nThree:\n\n```sh\nls\n```\n"
    found = whole(decode_edit_file, body, events(answer))
    assert found == {"modified_file_contents": answer, "is_error": False}
