"""Provider data as text: it comes back exactly, and nothing else is taken for it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import Origin, ProviderData
from byok.core.wire.encrypted_content import (
    read_encrypted,
    write_encrypted,
)
from tests.fakes.bodies import ANYTHING

DATA = ProviderData(Origin("anthropic", "box", "m"), {"signature": "CiQ+/é=="})
WHOLE = json.loads(write_encrypted(DATA))
EXACT: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), EXACT), st.text(), st.text())
def test_encrypted_content_returns_provider_data_unchanged(
    data: dict[str, Any], upstream: str, model: str
) -> None:
    written = ProviderData(Origin("gemini", upstream, model), data)
    assert read_encrypted(write_encrypted(written)) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gAAAAABo",
        "{}",
        '{"byok":1}',
        '{"byok":',
        '{"byok":1,' + "[" * 5000,
        write_encrypted(DATA)[:-2],
        json.dumps({**WHOLE, "byok": 2}, separators=(",", ":")),
        json.dumps({**WHOLE, "model": None}, separators=(",", ":")),
        json.dumps({**WHOLE, "data": "x"}, separators=(",", ":")),
        json.dumps({**WHOLE, "data": [1]}, separators=(",", ":")),
    ],
)
def test_encrypted_content_with_other_text_counts_as_absent(text: str) -> None:
    assert read_encrypted(text) is None


@given(st.text() | ANYTHING.map(lambda value: '{"byok":1,"data":' + json.dumps(value)))
def test_encrypted_content_of_any_text_never_fails(text: str) -> None:
    assert read_encrypted(text) is None


def test_encrypted_content_tells_its_origin() -> None:
    read = read_encrypted(write_encrypted(DATA))
    assert read is not None
    assert read.origin == Origin("anthropic", "box", "m")
