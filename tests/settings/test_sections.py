"""Each key has a description and a range."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from byok.settings import Settings, sections


def test_config_section_keys_have_descriptions() -> None:
    types = {t for t in vars(sections).values() if isinstance(t, type)}
    found = [t for t in types if issubclass(t, BaseModel)]
    assert len(found) >= 16
    for section in found:
        for name, field in section.model_fields.items():
            if field.annotation in found:
                continue  # a section of its own
            text = field.description or ""
            assert text.endswith("."), f"{section.__name__}.{name} has no description"


@pytest.mark.parametrize(
    "given",
    [
        {"chat": {"temperature": 2.1}},
        {"chat": {"temperature": float("nan")}},
        {"chat": {"top_p": 0}},
        {"chat": {"max_tokens": 0}},
        {"chat": {"context_chars": 999}},
        {"chat": {"context_chars": 400_001}},
        {"limits": {"streams": 0}},
        {"limits": {"connections": 7}},
        {"limits": {"waiting": -1}},
        {"limits": {"wait_seconds": 61}},
        {"log": {"level": "loud"}},
        {"tools": {"repair": "more"}},
        {"completion": {"way": "telepathy"}},
        {"completion": {"timeout_ms": 99}},
        {"completion": {"max_tokens": 0}},
        {"upstreams": {"demo": {"timeout": -1}}},
        {"routing": {"official": {"chat": "elsewhere"}}},
        {"routing": {"official": {"models": "off"}}},
        {"routing": {"official": {"token": "x"}}},
    ],
    ids=str,
)
def test_config_value_out_of_range_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**given)
