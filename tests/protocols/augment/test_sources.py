"""The list of sources: numbers, titles, and what a hostile title cannot do."""

from byok.protocols.augment.chat_reply import source_lines


def test_sources_are_one_line_each_whatever_they_contain() -> None:
    lines = [*source_lines({"https://a\n.example": "A\n\u2028[byok] title" * 99})]
    assert len(lines) == 2
    assert len(lines[1]) < 230
    assert lines[1].endswith("https://a .example")
    assert "\n" not in lines[1]


def test_sources_beyond_the_most_are_counted() -> None:
    lines = [*source_lines({f"https://a.example/{n}": "" for n in range(45)})]
    assert lines[-2:] == ["40. https://a.example/39", "and 5 more."]
