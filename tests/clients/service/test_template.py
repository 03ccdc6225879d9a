"""Templates: places are filled once, and empty lines of theirs go."""

import pytest

from byok.clients.service.base import fill


def test_value_with_a_place_of_its_own_stays_as_it_is() -> None:
    filled = fill("byok.socket", {"mark": "{listen}", "listen": "{mark}"})
    assert "# {listen}\n" in filled
    assert "[Socket]\n{mark}\nBind" in filled


def test_empty_value_leaves_no_line() -> None:
    assert "[Socket]\nBind" in fill("byok.socket", {"mark": "m", "listen": ""})


def test_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("byok.socket", {"mark": "m"})
