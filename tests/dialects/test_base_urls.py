"""Endings of base URLs: of the path, never of the host."""

import pytest

from byok.dialects.presets import path_ends_with, without_ending


@pytest.mark.parametrize(
    ("url", "ending", "rest"),
    [
        ("https://h/v1", "/v1", "https://h"),
        ("https://h/x/v1", "/v1", "https://h/x"),
        ("https://v1/v1", "/v1", "https://v1"),
        ("https://v1", "/v1", None),
        ("https://api/v1", "/api/v1", None),
        ("https://h/xv1", "/v1", None),
        ("https://h?a=/v1", "/v1", None),
        ("https://h/x", "", "https://h/x"),
    ],
)
def test_only_the_path_of_a_url_has_endings(
    url: str, ending: str, rest: str | None
) -> None:
    assert path_ends_with(url, ending) is (rest is not None)
    assert without_ending(url, ending) == (rest or url)
