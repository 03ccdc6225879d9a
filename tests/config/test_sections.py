"""Each key has a description and a range."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.config import Settings


def test_every_key_is_described_in_a_sentence() -> None:
    sections: list[Any] = [f.annotation for f in Settings.model_fields.values()]
    sections = [s for s in sections if hasattr(s, "model_fields")]
    assert len(sections) >= 7
    for section in sections:
        for name, field in section.model_fields.items():
            text = field.description or ""
            assert text.endswith("."), f"{section.__name__}.{name} has no description"


@pytest.mark.parametrize(
    "given",
    [
        {"chat": {"temperature": 2.1}},
        {"chat": {"temperature": float("nan")}},
        {"chat": {"top_p": 0}},
        {"chat": {"max_tokens": 0}},
        {"limits": {"streams": 0}},
        {"limits": {"connections": 7}},
        {"limits": {"waiting": -1}},
        {"limits": {"wait_seconds": 61}},
        {"log": {"level": "loud"}},
        {"tools": {"repair": "more"}},
        {"upstreams": {"demo": {"timeout": -1}}},
    ],
    ids=str,
)
def test_a_value_out_of_range_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**given)
