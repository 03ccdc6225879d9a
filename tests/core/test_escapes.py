"""What nobody sees is shown, what scripts need stays; long texts keep their ends."""

import json
import shlex
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.escapes import (
    LEFT_OUT,
    escape,
    escape_json,
    fair_share,
    is_text,
    keep_ends,
    shell_word,
    truncate_middle,
)
from tests.fakes.clock import check_linear


@pytest.mark.case("B117")
@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        ("\x00", "\\x00"),
        ("\x1b", "\\x1b"),
        ("\n", "\\n"),
        ("\r", "\\r"),
        ("\x7f", "\\x7f"),
        ("\x9b", "\\x9b"),
        ("\xad", "\\xad"),
        ("\u061c", "\\u061c"),
        ("\u200b", "\\u200b"),
        ("\u200c", "\\u200c"),
        ("\u200d", "\\u200d"),
        ("\u200e", "\\u200e"),
        ("\u2028", "\\u2028"),
        ("\u202e", "\\u202e"),
        ("\u2060", "\\u2060"),
        ("\u2066", "\\u2066"),
        ("\u3164", "\\u3164"),
        ("\ufe00", "\\ufe00"),
        ("\ufe0e", "\\ufe0e"),
        ("\ufe0f", "\\ufe0f"),
        ("\ufeff", "\\ufeff"),
        ("\udce9", "\\xe9"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\U000e0100", "\\U000e0100"),
    ],
    ids=ascii,
)
def test_escape_shows_invisible_characters(odd: str, shown: str) -> None:
    assert escape(f"a{odd}b") == f"a{shown}b"
    assert escape(f"\u00e9{odd * 3}") == f"\u00e9{shown * 3}"


@pytest.mark.parametrize(
    "text",
    [
        "def main():\t# tab",
        "\u00fcn\u00ef c\u00f6d\u00e9, \u65e5\u672c\u8a9e, \u05e9\u05dc\u05d5\u05dd",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0915\u094d\u200d\u0937",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u2764\ufe0f\u200d\U0001f525 \u2764\ufe0f",
        "1\ufe0f\u20e3 \u00a9\ufe0e \u26a0\ufe0f",
        "\\x1b \\u200b",
    ],
    ids=ascii,
)
def test_escape_leaves_visible_characters(text: str) -> None:
    assert escape(text) == text


@pytest.mark.case("B117")
@pytest.mark.parametrize(
    "hidden", ["\ufe0e\ufe0f\ufe0e", "\u200c\u200d\u200c", "\ufe0f\ufe0f"], ids=ascii
)
def test_escape_shows_bits_hidden_behind_an_emoji(hidden: str) -> None:
    assert escape(f"\U0001f600{hidden}").count("\\u") >= len(hidden) - 1


@pytest.mark.case("B117")
def test_escape_covers_every_format_character_without_a_glyph() -> None:
    shaped = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
    for code in range(sys.maxunicode + 1):
        odd = unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if odd and code not in shaped and not 0x13430 <= code <= 0x1345F and code != 9:
            assert escape(f"a{chr(code)}b") != f"a{chr(code)}b", hex(code)


def test_json_has_escapes_of_json_and_keeps_its_line_ends() -> None:
    shown = escape_json('{\n "a": "\x1b\U000e0041\xe9"}')
    assert shown == '{\n "a": "\\u001b\\udb40\\udc41\xe9"}'


@given(st.text())
def test_escape_twice_changes_nothing_more(text: str) -> None:
    shown = escape(text)
    assert escape(shown) == shown
    assert "\n" not in shown
    shown.encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_escape_in_json_keeps_its_value(text: str) -> None:
    whole = json.dumps({"a": text}, ensure_ascii=False, indent=2)
    shown = escape_json(whole)
    assert json.loads(shown) == {"a": text}
    assert shown.count("\n") == 2


@given(st.text())
def test_a_word_for_a_shell_is_one_word_and_in_quotes(text: str) -> None:
    word = shell_word(text)
    assert shlex.split(f"chmod go-w {word}") == ["chmod", "go-w", text]
    assert (word[0], word[-1]) == ("'", "'")


@pytest.mark.parametrize("piece", ["\u200d", "\u0645\u200c", "\ufe0f", "\xe9"])
def test_escape_takes_linear_time(piece: str) -> None:
    check_linear(lambda size: escape(piece * size), 20_000)


# Texts that have no room: their ends stay, and each gets its share


LETTERS = st.text("abc\n", max_size=400)


@given(LETTERS, st.integers(0, 60), st.integers(0, 60))
def test_truncate_middle_keeps_both_ends(text: str, head: int, tail: int) -> None:
    cut = keep_ends(text, head, tail)
    if cut == text:
        assert len(text) <= head + len(LEFT_OUT) + tail
    else:
        assert len(cut) < len(text)
        assert cut == text[:head] + LEFT_OUT + (text[-tail:] if tail else "")


@given(LETTERS, st.integers(60, 500))
def test_truncate_cuts_a_text_to_a_length(text: str, limit: int) -> None:
    cut = truncate_middle(text, limit)
    assert len(cut) <= limit
    assert (cut == text) is (len(text) <= limit)


@given(LETTERS, st.integers(0, 60))
def test_truncate_takes_any_limit(text: str, limit: int) -> None:
    assert len(truncate_middle(text, limit)) <= max(len(LEFT_OUT) + 20, limit)


@given(st.lists(st.integers(0, 1000), max_size=30), st.integers(0, 20_000))
def test_fair_share_cap_fills_the_room_and_no_more(sizes: list[int], room: int) -> None:
    cap = fair_share(sizes, room)
    taken = sum(min(size, cap) for size in sizes)
    assert taken <= room
    larger = sum(min(size, cap + 1) for size in sizes)
    assert larger > room or cap >= max(sizes, default=0)


@pytest.mark.parametrize("name", ["plain", "größe", "目录", "\U0001f525"])
def test_a_name_in_any_script_is_a_text(name: str) -> None:
    assert is_text(name)


def test_a_name_with_bytes_that_are_no_utf_8_is_no_text() -> None:
    assert not is_text(b"caf\xe9".decode("utf-8", "surrogateescape"))
