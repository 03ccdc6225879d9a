"""Which models want the signatures of their calls back."""

import pytest

from byok.dialects.safe_names import wants_signatures


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("gemini-3-pro-preview", True),
        ("models/gemini-3.6-flash", True),
        ("Gemini-Flash-Latest", True),
        ("gemini-10-pro", True),
        ("google/gemini-3-pro", True),
        ("gemini-2-flash", False),
        ("gemini-2.5-pro", False),
        ("gemini-1.5-flash", False),
        ("gemma-4", False),
        ("", False),
    ],
)
def test_gemini_3_and_later_want_signatures(model: str, wanted: bool) -> None:
    assert wants_signatures(model) is wanted
