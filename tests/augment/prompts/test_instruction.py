"""An instruction replaces lines of the whole file."""

from hypothesis import given
from hypothesis import strategies as st

from byok.augment.positions import INSERTION, lines
from byok.augment.prompts.instruction import decode
from tests.fakes.jobs import events, streamed

TEXTS = st.text(alphabet="ab \t🚢\r\n", max_size=20)


def test_lines_of_crlf_files_are_counted_once() -> None:
    body = {
        "instruction": "add a docstring",
        "prefix": "a\r\n\r\n\r\n",
        "selected_text": "def f():\r\n",
        "suffix": "    pass\r\n",
    }
    ran = streamed(decode, body, events("```py\nde", "f g():\n    'x'\n``", "`\n"))
    assert (ran.lines[0]["replacement_start_line"], ran.error) == (4, None)
    assert ran.lines[0]["replacement_end_line"] == 4
    assert ran.lines[0]["replacement_old_text"] == "def f():\r\n"
    assert ran.text == "def g():\r\n    'x'\r\n"
    assert all("`" not in line["text"] for line in ran.lines)


@given(TEXTS, TEXTS, TEXTS)
def test_the_lines_named_hold_the_selection(prefix: str, old: str, suffix: str) -> None:
    body = {"instruction": "x", "prefix": prefix, "selected_text": old}
    ran = streamed(decode, {**body, "suffix": suffix}, events("new"))
    first = ran.lines[0]
    start, end = first["replacement_start_line"], first["replacement_end_line"]
    whole = lines(prefix + old + suffix)
    bare = old.strip("\r\n")
    if bare and not old.startswith(("\r", "\n")):
        assert bare in "".join(whole[start - 1 : end])
        assert first["replacement_old_text"] == old
    if not old:
        assert start == end
        assert first["replacement_old_text"].startswith(INSERTION)
    new = "".join(line.get("replacement_text", "") for line in ran.lines)
    assert new.rstrip("\r\n") == "new"
    assert new.endswith(("\r", "\n")) == (bool(old) and old.endswith(("\r", "\n")))
