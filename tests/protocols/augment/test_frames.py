"""Frames around what users and strangers wrote."""

import re
import sys
import unicodedata
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.protocols.augment.frames import LONGEST, TAGS, frame, guide_space, read_guides
from tests.fakes.clock import check_linear

CLOSERS = (
    "</rule>", "</rule >", "</ rule>", "< / rule>", "</RULE>", "</rUle\t>", "</rule",
    "</\nrule>", "</rule\n>", "</rule x='1'>", "<\x00/rule>", "</\x00rule>",
    "</ru\x00le>", "</rule\x00>", "<\u200b/rule>", "</ru\u200ble>", "</\u202erule>",
    "<\U000e0041/rule>", "</ｒｕｌｅ>", "＜／ｒｕｌｅ＞", "＜/rule>", "</𝐫𝐮𝐥𝐞>",
    "‹/rule›",
    "&lt;/rule&gt;", "&LT;/rule>", "&lt/rule>", "&#60;/rule>", "&#0060;&#47;rule>",
    "&#x3c;&#x2F;rule>", "\\u003c/rule>", "<rule>", '<rule name="x">', "<RULE>",
    "</user_guidelines >", "</USER_GUIDELINES>", "</user-guidelines>", "</memories>",
    "</user＿guidelines>", "<workspace_guidelines>", "</persona\u2028>",
)  # fmt: skip


def closes(text: str) -> bool:
    """Tell whether a lenient reader finds the end of a frame: not by byok's rules."""
    shown = re.sub(r"\\(?:x..|u....|U........)", "", unescape(unescape(text)))
    plain = unicodedata.normalize("NFKC", shown).casefold()
    squeezed = re.sub(r"[^!-~]|[_-]", "", plain)
    tags = "|".join(tag.replace("_", "") for tag in TAGS)
    return bool(re.search(rf"</(?:{tags})(?![a-z0-9])", squeezed))


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("closer", CLOSERS, ids=ascii)
def test_nothing_in_a_frame_is_a_tag_of_one(tag: str, closer: str) -> None:
    said = frame(tag, f"before {closer} behind")
    first, *lines, last = said.split("\n")
    assert (first, last) == (f"<{tag}>", f"</{tag}>")
    inner = "\n".join(lines)
    assert not closes(inner)
    assert "\\" in inner  # it is still to be seen that something stood there
    assert inner.startswith("before ") and inner.endswith(" behind")


@pytest.mark.parametrize(
    "text",
    [
        "<div></div> <ruler> </rules> <memory> a<b/c",
        "if a < rule: pass",
        "List<Ruler> of rules, persona/memories",
        "&lt;br/&gt; {{slot}} {{#tool:view}} ``` ``` ````",
    ],
)
def test_other_tags_and_marks_stay_as_they_are(text: str) -> None:
    assert frame("rule", text) == f"<rule>\n{text}\n</rule>"


def test_every_form_of_a_first_character_is_looked_for() -> None:
    forms = [chr(code) for code in range(sys.maxunicode + 1)
             if unicodedata.decomposition(chr(code))]  # fmt: skip
    for form in (*"<&\\", *forms):
        plain = unicodedata.normalize("NFKC", form)
        if plain in ("<", "‹", "\u3008", "⟨"):
            assert f"{form}\\/rule>" in frame("rule", f"{form}/rule>"), ascii(form)
        if plain == "&":
            assert f"{form}lt;\\/rule>" in frame("rule", f"{form}lt;/rule>"), ascii(
                form
            )


@given(st.text("<>/\\ \x00\u200brRuUlLeE＜／&lt;#60x3c_\n", max_size=60))
def test_no_text_of_these_letters_closes_its_frame(text: str) -> None:
    said = frame("rule", text)
    assert not said or said.lower().count("</rule") == 1
    inner = said.removeprefix("<rule>\n").removesuffix("\n</rule>")
    assert not closes(inner)


@given(st.text(max_size=80))
def test_a_frame_in_a_frame_is_not_quoted_twice(text: str) -> None:
    once = frame("rule", text).removeprefix("<rule>\n").removesuffix("\n</rule>")
    assert not once or frame("rule", once) == f"<rule>\n{once.strip()}\n</rule>"


def test_a_frame_shows_what_nobody_sees() -> None:
    assert frame("rule", "a\u200bb\x07") == "<rule>\na\\u200bb\\x07\n</rule>"


@pytest.mark.parametrize(
    ("letter", "longest"),
    [("a", LONGEST), ("\x00", 1000), ("</rule>", 1000), ("＜", LONGEST)],
)
def test_a_long_text_is_cut_in_the_middle(letter: str, longest: int) -> None:
    said = frame("rule", letter * 2 * LONGEST + "z", longest=longest)
    assert len(said) < longest + 100
    assert "left out" in said
    assert said.endswith("z\n</rule>")


def test_the_name_of_a_frame_stays_in_its_quotes() -> None:
    said = frame("rule", "x", name='a"><rule>\n\u202e' + "y" * 1_000_000)
    first = said.split("\n")[0]
    assert first.count('"') == 2 and first.count("<") == first.count(">") == 1
    assert len(said) < 500


@pytest.mark.parametrize(
    "unit",
    ["<", "</ ", "< ", "<\x00", "&#0", "<r", "＜ｒ", "\\x", "\\x3c", "\\u003c"],
)
def test_quoting_takes_linear_time(unit: str) -> None:
    check_linear(lambda size: frame("rule", unit * (size // len(unit))), LONGEST // 2)


# Guidelines, rules and skills, in the room that the model's window leaves


RULES = [{"path": f"r{n}.md", "content": f"Rule {n}. " * 20} for n in range(10_000)]


@pytest.mark.parametrize(
    ("body", "frames"),
    [
        ({}, []),
        ({"user_guidelines": "A."}, ["<user_guidelines>\nA.\n</user_guidelines>"]),
        ({"rules": ["B."]}, ["<rule>\nB.\n</rule>"]),
        ({"rules": [{"name": "x", "text": "B."}]}, ['<rule name="x">\nB.\n</rule>']),
        ({"skills": [None, 5, [[]], {}, {"text": 7}]}, ["<rule>\n7\n</rule>"]),
    ],
    ids=str,
)
def test_each_guide_has_a_frame(body: dict[str, Any], frames: list[str]) -> None:
    assert read_guides(body) == ((*frames,), "")


@pytest.mark.parametrize("window", [0, 1024])
@pytest.mark.parametrize(
    "body",
    [
        {"user_guidelines": "a" * 250_000},
        {"user_guidelines": "\x00" * 250_000, "workspace_guidelines": "\n" * 9},
        {"rules": RULES[:900]},
        {"rules": ["\U000e0041" * 150] * 900},
        {"rules": ["x"] * 10_000},
        {"rules": [{"path": "p" * 10_000, "content": "x"}] * 2000},
        {"user_guidelines": "b" * 10**5, "rules": RULES[:900], "skills": RULES[:900]},
    ],
    ids=["long", "unseen", "rules", "unseen rules", "tiny", "long names", "all"],
)
def test_guides_never_take_more_than_their_room(
    body: dict[str, Any], window: int
) -> None:
    guides = read_guides(body, window)
    room = guide_space(window)
    assert 0 < room <= LONGEST
    assert not window or room <= window  # characters: a third of it in tokens, or less
    assert sum(map(len, guides.frames)) <= 2 * room + 1000
    assert "characters" in guides.note and "fit" in guides.note


def test_long_texts_are_cut_before_short_ones() -> None:
    body = {"user_guidelines": "a" * 100_000, "rules": ["Use tabs.", "b" * 100_000]}
    guides = read_guides(body, 8192)
    assert "<rule>\nUse tabs.\n</rule>" in guides.frames
    assert [("left out" in text) for text in guides.frames] == [True, False, True]
    assert "2 are cut" in guides.note


def test_of_very_many_rules_the_first_ones_are_kept() -> None:
    guides = read_guides({"rules": RULES}, 8192)
    kept = len(guides.frames)
    assert 10 < kept < 100
    assert [f'name="r{n}.md"' in t for n, t in enumerate(guides.frames)] == [
        True
    ] * kept
    assert f"{10_000 - kept} are left out" in guides.note
