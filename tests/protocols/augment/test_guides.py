"""Guidelines, rules and skills, in the room that the model's window leaves."""

from typing import Any

import pytest

from byok.protocols.augment.frames import LONGEST, read_guides, room_of

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


@pytest.mark.parametrize("window", [0, 1024, 131_072, 10**9])
@pytest.mark.parametrize(
    "body",
    [
        {"user_guidelines": "a" * 1_000_000},
        {"user_guidelines": "\x00" * 1_000_000, "workspace_guidelines": "\n" * 9},
        {"rules": RULES[:2000]},
        {"rules": ["\U000e0041" * 150] * 2000},
        {"rules": ["x"] * 10_000},
        {"rules": [{"path": "p" * 10_000, "content": "x"}] * 2000},
        {"user_guidelines": "b" * 10**6, "rules": RULES[:2000], "skills": RULES[:2000]},
    ],
    ids=["long", "unseen", "rules", "unseen rules", "tiny", "long names", "all"],
)
def test_guides_never_take_more_than_their_room(
    body: dict[str, Any], window: int
) -> None:
    guides = read_guides(body, window)
    room = room_of(window)
    assert 0 < room <= LONGEST
    assert not window or room <= window  # characters: a third of it in tokens, or less
    assert sum(map(len, guides.frames)) <= 2 * room + 1000
    assert "characters" in guides.note and "fit" in guides.note
    assert read_guides(body, window) == guides


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
