"""Commands beside which nobody listens."""

import pytest

from tests.fakes.ports import free_port


@pytest.fixture
def unused_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let byok's port be one where nobody listens, whoever has the usual one."""
    monkeypatch.setenv("BYOK_SERVER__PORT", str(free_port()))
