"""The table of vendors' oddities."""

import dataclasses

import pytest

from byok.dialects.presets import PRESETS
from byok.dialects.quirks import DEFAULT, QUIRKS, Quirks


@pytest.mark.parametrize("name", QUIRKS)
def test_a_row_is_for_a_preset_and_says_something(name: str) -> None:
    assert name in PRESETS
    assert QUIRKS[name] != DEFAULT


@pytest.mark.parametrize("quirks", QUIRKS.values(), ids=list(QUIRKS))
def test_a_row_can_be_obeyed(quirks: Quirks) -> None:
    assert quirks.output_cap in ("max_tokens", "max_completion_tokens")
    assert 8 <= quirks.tool_id_length <= 64
    assert quirks.auth_header.replace("-", "").isalnum()


def test_every_field_is_explained() -> None:
    told = Quirks.__doc__ or ""
    assert [f.name for f in dataclasses.fields(Quirks) if f.name not in told] == []
