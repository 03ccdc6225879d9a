"""Notices about windows: with their cure, once per conversation and model."""

from byok.upstream.context_window import WindowNotices


def test_a_cut_or_a_full_window_is_told_once() -> None:
    notices = WindowNotices("Set it.")
    cut = notices.note_cut("a", "m", 4096, 12_000)
    assert cut is not None and "4,096 of about 12,000" in cut.text
    assert notices.note_no_room("a", "m", 4096, 6000) is None, "the cure is the same"
    full = notices.note_no_room("b", "m", 4096, 6000)
    assert full is not None and "6,000" in full.text and "Set it." in full.text
    assert notices.note_cut("b", "m", 4096, 13_000) is None
    assert notices.note_instructions("b", "m", 4096) is None
    shorter = notices.note_instructions("c", "m", 4096)
    assert shorter is not None and "4,096" in shorter.text and "Set it." in shorter.text
    assert notices.note_cut("b", "n", 4096, 12_000) is not None
    assert notices.note_cut(None, "m", 4096, 12_000) is None


def test_what_was_told_is_forgotten_in_time() -> None:
    notices = WindowNotices("")
    for number in range(1001):
        assert notices.note_cut(str(number), "m", 1, 2) is not None
    assert notices.note_cut("1000", "m", 1, 2) is None
    assert notices.note_cut("0", "m", 1, 2) is not None
