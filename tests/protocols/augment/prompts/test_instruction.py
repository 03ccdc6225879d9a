"""An instruction replaces lines of the whole file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.positions import INSERTION, lines
from byok.protocols.augment.prompts.edit import decode_instruction
from tests.fakes.jobs import events, streamed

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


@pytest.mark.parametrize(
    ("prefix", "old", "suffix", "shown", "text"),
    [
        ("a = 1\nb = foo(", "x", ", 2)\nc\n", "b = foo(x, 2)", "b = foo(new, 2)"),
        ("a\n  ", "x\n", "c\n", "  x\n", "  new\n"),
        ("a\nb(", "x,\n  y", ")\nc", "b(x,\n  y)", "b(new)"),
        ("a\nb = ", "", "\nc\n", "b = ", "b = new"),
        ("a\nb(", "", ")\r\nc\n", "b()", "b(new)"),
        ("a\n  ", "", "b\n", f"{INSERTION}a", "new\n"),
        ("a\n", "", "b\n", f"{INSERTION}a", "new\n"),
    ],
)
def test_instruction_stream_keeps_the_rest_of_a_line(
    prefix: str, old: str, suffix: str, shown: str, text: str
) -> None:
    body = {"instruction": "x", "prefix": prefix, "selected_text": old}
    ran = streamed(decode_instruction, {**body, "suffix": suffix}, events("new\n"))
    assert ran.lines[0]["replacement_old_text"] == shown
    assert ran.text == text
