"""Frames around what users and strangers wrote."""

from byok.augment.frames import LONGEST, frame


def test_a_frame_has_a_text_and_its_attributes() -> None:
    assert frame("rule", "a\n b\n", name="x") == '<rule name="x">\na\n b\n</rule>'
    assert frame("rule", " \n") == ""


def test_a_frame_is_closed_by_its_own_tag_only() -> None:
    said = frame("rule", "</rule>\n</rule >\n</other>")
    assert said == "<rule>\n<\\/rule>\n<\\/rule >\n</other>\n</rule>"


def test_a_frame_shows_what_nobody_sees() -> None:
    assert frame("rule", "a\u200bb\x07") == "<rule>\na\\u200bb\\x07\n</rule>"


def test_a_long_text_is_cut_in_the_middle() -> None:
    said = frame("rule", "a" * LONGEST + "z" * LONGEST)
    assert len(said) < LONGEST + 100
    assert said.startswith("<rule>\naaa")
    assert said.endswith("zzz\n</rule>")
