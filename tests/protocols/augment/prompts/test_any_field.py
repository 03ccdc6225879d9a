"""Endpoints that ask for one text take any JSON in any field."""

from typing import Any

import pytest

from byok.protocols.augment.endpoints import ENDPOINTS, Generate
from tests.fakes.bodies import TEXT_BODIES, TEXT_FIELDS
from tests.fakes.jobs import never_fails

DECODERS = {row.path: row.how.decode for row in ENDPOINTS if isinstance(row, Generate)}
ODD: list[Any] = [
    *(None, "x", "", 2**70, -1, 1.5, True, [], {}),
    *(["x", None, {"x": 1}], {"x": [1]}, "\ud800'; DROP TABLE x;--\x00"),
]


@pytest.mark.parametrize("path", TEXT_BODIES)
@pytest.mark.parametrize("field", TEXT_FIELDS)
def test_any_json_in_a_field_is_read_or_refused(path: str, field: str) -> None:
    for odd in ODD:
        never_fails(DECODERS[path], {**TEXT_BODIES[path], field: odd})
