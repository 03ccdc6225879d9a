"""Commands beside which nobody listens, and a project that they index."""

from pathlib import Path

import pytest

from tests.fakes.ports import free_port
from tests.fakes.project import make_project


@pytest.fixture
def unused_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let byok's port be one where nobody listens, whoever has the usual one."""
    monkeypatch.setenv("BYOK_SERVER__PORT", str(free_port()))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with some code, and with what is not for anybody."""
    return make_project(tmp_path / "bakery")
