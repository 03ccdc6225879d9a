"""Prices belong to a vendor's own address."""

import pytest

from byok.search.vectors.model.prefixes import dollars_per_million


@pytest.mark.parametrize(
    ("host", "model", "dollars"),
    [
        ("api.openai.com:443", "text-embedding-3-small", 0.02),
        ("api.openai.com", "text-embedding-3-large", 0.13),
        ("generativelanguage.googleapis.com:443", "models/gemini-embedding-001", 0.15),
        ("api.openai.com:443", "unknown", None),
        ("gateway.example:443", "text-embedding-3-small", None),
        ("", "", None),
    ],
)
def test_prices_are_known_by_host_and_model(
    host: str, model: str, dollars: float | None
) -> None:
    assert dollars_per_million(host, model) == dollars
