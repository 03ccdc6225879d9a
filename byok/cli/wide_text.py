"""Wrap lines of Chinese, Japanese and Korean text, which has no spaces to break at."""

from byok.core.late import compile_late

# A line may be broken between two wide characters, but not before a closing sign or
# behind an opening one.
_WIDE = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_OPENING, _CLOSING = "（《「『【", "，。；：、！？）》」』】"
_PLAIN = rf"[^\s{_WIDE}{_OPENING}{_CLOSING}]+"
_WORD = compile_late(rf"\s*(?:[{_OPENING}]*(?:{_PLAIN}|[{_WIDE}])[{_CLOSING}]*|\S)\s*")


def break_wide_text() -> None:
    """Make rich break lines between wide characters, too.

    By itself it breaks at spaces only, and cuts off text that is longer than a column.
    """
    from rich import _wrap

    _wrap.re_word = _WORD


def count_cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width

    return sum(2 if east_asian_width(sign) in "WF" else 1 for sign in text)


def wrap_words(text: str, width: int, *, indent: str) -> list[str]:
    """Break a text into lines of a width, but no word; further lines are indented."""
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1].strip() and count_cells(lines[-1] + word.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append(indent)
            word = word.lstrip()
        lines[-1] += word
    return lines
