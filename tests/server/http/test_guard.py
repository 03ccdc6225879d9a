"""The guard: what a request's head must look like before anything else happens."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.daemon.token import TokenCheck, read_token
from byok.core.errors import ByokError
from byok.server.http.guard import Guard, Requester

PORT = 8317


def guard_of(folder: Path, **options: Any) -> Guard:
    checks = TokenCheck(folder / "token"), TokenCheck(folder / "owner-secret")
    return Guard(*checks, **options)


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A guard of the port above, with a token of its own."""
    guard = guard_of(tmp_path)
    guard.listen_on(PORT)
    return guard


def test_guard_tells_the_owner_from_a_client(guard: Guard, tmp_path: Path) -> None:
    callers = {"token": Requester.CLIENT, "owner-secret": Requester.OWNER}
    for name, caller in callers.items():
        headers = {"Authorization": f"Bearer {read_token(tmp_path / name)}"}
        assert guard.check_token(headers) is caller


def test_guard_counts_refusals_and_logs_them_every_ten_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    moments = iter((0.0, 1.0, 9.9, 10.0, 11.0))
    guard = guard_of(tmp_path, clock=lambda: next(moments))
    for _ in range(5):
        with pytest.raises(ByokError) as refused:
            guard.check_token({"Authorization": "Bearer a-secret-guess"})
        guard.count_refused(refused.value)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "requests refused: 1, now: unauthorized",
        "requests refused: 3, now: unauthorized",
    ]
