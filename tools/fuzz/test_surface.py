"""The description that schemathesis gets names every endpoint."""

import pytest

from byok.protocols.augment.endpoints import ENDPOINTS
from byok.server.openai_api import ROUTES

pytest.importorskip("schemathesis", reason="of the group fuzz, see scripts/fuzz")

from tools.fuzz import surface


def test_the_description_for_schemathesis_has_every_row() -> None:
    rows = {row.path for row in (*ENDPOINTS, *ROUTES)}
    assert set(surface.description()["paths"]) == rows
