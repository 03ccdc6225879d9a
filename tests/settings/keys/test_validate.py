"""What counts as a key; a refusal never shows it (B98)."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import ConfigError
from byok.settings.keys import clean_key, fingerprint

KEY = "sk-canary0123456789"


@pytest.mark.parametrize(
    "pasted",
    [
        KEY,
        f"  {KEY}  ",
        f"{KEY}\n",
        f"{KEY}\r\n",
        f"\t{KEY}",
        f'"{KEY}"',
        f"'{KEY}'\n",
        f'" {KEY} "',
        f"Bearer {KEY}",
        f"bearer   {KEY}",
        f"Bearer bearer {KEY}",
        f'"Bearer {KEY}"',
    ],
    ids=repr,
)
@pytest.mark.case("B98")
def test_key_validation_removes_what_a_paste_brings_along(pasted: str) -> None:
    assert clean_key(pasted) == KEY


@pytest.mark.parametrize("length", [8, 512])
def test_key_validation_accepts_the_shortest_and_the_longest_key(length: int) -> None:
    assert clean_key("k" * length) == "k" * length


@pytest.mark.parametrize(
    ("pasted", "told"),
    [
        pytest.param("", "at least 8", id="empty"),
        pytest.param(" \t\r\n", "at least 8", id="spaces"),
        pytest.param("''", "at least 8", id="empty quotes"),
        pytest.param("Bearer ", "at least 8", id="Bearer alone"),
        pytest.param("k" * 7, "at least 8", id="seven characters"),
        pytest.param("k" * 513, "at most 512", id="513 characters"),
        pytest.param(f"{KEY} {KEY}", "no space", id="two keys"),
        pytest.param(f"Authorization: Bearer {KEY}", "no space", id="a whole header"),
        pytest.param(f"{KEY}\r\nX-A: y", "no space", id="a second line"),
        pytest.param(f"{KEY}é", "ASCII", id="an accent"),
        pytest.param(f"\u200b{KEY}", "ASCII", id="a zero-width space"),
        pytest.param(f"{KEY}\0", "printable", id="NUL"),
    ],
)
@pytest.mark.case("B98")
def test_key_validation_refuses_an_invalid_key_without_showing_it(
    pasted: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        clean_key(pasted)
    assert KEY not in caught.value.sentence
    assert "kkkk" not in caught.value.sentence


@given(st.text(max_size=600))
@pytest.mark.case("B98")
def test_key_validation_result_can_always_be_sent_in_a_header(pasted: str) -> None:
    try:
        key = clean_key(pasted)
    except ConfigError:
        return
    assert 8 <= len(key) <= 512
    assert key.isascii()
    assert key.isprintable()
    assert key == key.strip()
    assert " " not in key
    assert key in pasted


def test_key_fingerprint_tells_keys_apart_and_reveals_nothing() -> None:
    assert fingerprint(KEY) == hashlib.sha256(KEY.encode()).hexdigest()[:8]
    assert fingerprint(KEY) != fingerprint(f"{KEY}x")
