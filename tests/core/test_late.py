"""Patterns that are compiled late find what others find."""

import re

import pytest

from byok.core.late import compile_late


def test_a_pattern_that_is_compiled_late_is_used_like_any_other() -> None:
    late, early = compile_late("(b+)", re.IGNORECASE), re.compile("(b+)", re.IGNORECASE)
    for _ in range(2):
        assert late.findall("aBbcb") == early.findall("aBbcb") == ["Bb", "b"]
        assert late.sub(r"<\1>", "abc") == "a<b>c"
    assert late.pattern == early.pattern


def test_a_pattern_that_is_none_fails_when_it_is_used() -> None:
    late = compile_late("(")
    with pytest.raises(re.error):
        late.search("")
