"""The guard: what a request's head must look like before anything else happens."""

from pathlib import Path
from typing import Any

import pytest

from byok.core.daemon.token import TokenCheck, read_token
from byok.core.errors import ByokError
from byok.server.http.guard import Guard, Requester, client_of

PORT = 8317


def guard_of(folder: Path, **options: Any) -> Guard:
    checks = TokenCheck(folder / "token"), TokenCheck(folder / "owner-secret")
    return Guard(*checks, PORT, **options)


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A guard of the port above, with a token of its own."""
    return guard_of(tmp_path)


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


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (
            "Augment.vscode-augment/0.600.1 (linux; x64; 6.1) vscode/1.99.0",
            "vscode/0.600.1",
        ),
        ("Augment.vscode-augment/0.600.1-beta (x) cursor/1.0", "vscode/0.600.1-beta"),
        ("augment.intellij/0.300.0 (linux) IntelliJ IDEA/2026.1", "intellij/0.300.0"),
        ("augment.cli/0.9.2 (commit abc)/interactive", "cli/0.9.2"),
        ("augment.sdk.context/0.1.10 (python)", "sdk/0.1.10"),
        ("AsyncOpenAI/Python 2.0.1", "openai-python/2.0.1"),
        ("OpenAI/JS 5.1.0", "openai-js/5.1.0"),
        ("Python/3.11 aiohttp/3.14", "other"),
        ("augment.cli/" + "9" * 100, "cli/" + "9" * 32),
        ("augment.cli/../../etc", "other"),
        ("my secret augment.cli/1", "other"),
        ("", ""),
    ],
)
def test_user_agent_is_shown_as_family_and_version(header: str, client: str) -> None:
    assert client_of(header) == client
