"""The rows of refusals themselves: their hints and their patterns."""

import re

from byok.dialects.refusals import ROWS as KNOWN


def test_refusal_class_has_a_hint() -> None:
    for _, refusal in KNOWN:
        assert re.fullmatch(r"[a-z_]+", refusal.kind)
        assert refusal.hint.endswith(".")
        assert len(refusal.hint) < 110


def test_refusal_patterns_are_in_lower_case() -> None:
    words = [word for row, _ in KNOWN for word in row]
    assert [w for w in words if w != w.lower() and r"\S" not in w] == []
    assert len(set(words)) == len(words)
