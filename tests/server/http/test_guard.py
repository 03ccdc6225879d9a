"""The guard: what a request's head must look like before anything else happens."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import HttpVersion, HttpVersion10, HttpVersion11
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import BaseRequest
from multidict import CIMultiDict

from byok.core.daemon.token import TokenCheck, read_token
from byok.core.errors import ByokError
from byok.server.http.guard import Guard, Requester

PORT = 8317
OWN = f"127.0.0.1:{PORT}"
JSON = "application/json"


def guard_of(folder: Path, **options: Any) -> Guard:
    checks = TokenCheck(folder / "token"), TokenCheck(folder / "owner-secret")
    return Guard(*checks, **options)


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    """A guard of the port above, with a token of its own."""
    guard = guard_of(tmp_path)
    guard.listen_on(PORT)
    return guard


def asked(
    *headers: tuple[str, str],
    host: str = OWN,
    method: str = "POST",
    target: str = "/chat",
    version: HttpVersion = HttpVersion11,
) -> BaseRequest:
    head = CIMultiDict([("Host", host), *headers])
    return make_mocked_request(method, target, headers=head, version=version)


@pytest.mark.parametrize("host", [OWN, f"localhost:{PORT}", f"[::1]:{PORT}"])
@pytest.mark.parametrize("change", [str.lower, str.upper])
def test_guard_accepts_the_three_own_host_names(
    guard: Guard, host: str, change: type[str]
) -> None:
    guard.check_origin(asked(host=change(host)))


@pytest.mark.parametrize(
    ("request_", "status", "code"),
    [
        pytest.param(asked(host=""), 421, "host_not_allowed", id="empty host"),
        pytest.param(asked(host="127.0.0.1"), 421, "host_not_allowed", id="no port"),
        pytest.param(
            asked(host=f"127.0.0.1:{PORT + 1}"), 421, "host_not_allowed", id="port"
        ),
        pytest.param(
            asked(host=f"byok.local:{PORT}"), 421, "host_not_allowed", id="name"
        ),
        pytest.param(
            asked(host=f"0.0.0.0:{PORT}"), 421, "host_not_allowed", id="any address"
        ),
        pytest.param(
            asked(("Origin", f"http://{OWN}")), 403, "origin_not_allowed", id="origin"
        ),
        pytest.param(
            asked(("Sec-Fetch-Site", "cross-site")),
            403,
            "origin_not_allowed",
            id="cross-site",
        ),
        pytest.param(asked(method="OPTIONS"), 403, "origin_not_allowed", id="options"),
        pytest.param(asked(version=HttpVersion10), 400, "http_version", id="HTTP/1.0"),
        pytest.param(asked(target="*"), 400, "bad_target", id="asterisk"),
        pytest.param(asked(("Host", OWN)), 400, "bad_http", id="two hosts"),
        pytest.param(
            asked(("Authorization", "a"), ("Authorization", "a")),
            400,
            "bad_http",
            id="two tokens",
        ),
        pytest.param(
            asked(("Content-Type", JSON), ("Content-Type", JSON)),
            400,
            "bad_http",
            id="two types",
        ),
    ],
)
def test_guard_refuses_a_foreign_host_or_origin(
    guard: Guard, request_: BaseRequest, status: int, code: str
) -> None:
    with pytest.raises(ByokError) as caught:
        guard.check_origin(request_)
    assert (caught.value.status, caught.value.code) == (status, code)


@pytest.mark.parametrize(
    ("length", "refused"), [("9", False), ("10", False), ("11", True)]
)
def test_guard_accepts_a_declared_length_up_to_the_limit(
    guard: Guard, length: str, refused: bool
) -> None:
    request = asked(("Content-Length", length))
    if not refused:
        guard.check_length(request, 10)
        return
    with pytest.raises(ByokError) as caught:
        guard.check_length(request, 10)
    assert (caught.value.status, caught.value.code) == (413, "body_too_large")


def test_guard_refuses_a_missing_token_and_says_where_to_find_it(guard: Guard) -> None:
    with pytest.raises(ByokError) as caught:
        guard.check_token({})
    assert (caught.value.status, caught.value.code) == (401, "unauthorized")
    assert "byok token" in caught.value.hint


def test_guard_tells_the_owner_from_a_client(guard: Guard, tmp_path: Path) -> None:
    callers = {"token": Requester.CLIENT, "owner-secret": Requester.OWNER}
    for name, caller in callers.items():
        headers = {"Authorization": f"Bearer {read_token(tmp_path / name)}"}
        assert guard.check_token(headers) is caller


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": JSON}, 200),
        ({"Content-Type": "Application/JSON ; Charset=utf-8"}, 200),
        ({"Content-Type": f'{JSON}; charset="UTF-8"'}, 200),
        ({"Content-Type": JSON, "Content-Encoding": "identity"}, 200),
        ({"Content-Type": JSON, "Expect": "100-Continue"}, 200),
        ({}, 415),
        ({"Content-Type": ""}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/jsonx"}, 415),
        ({"Content-Type": f"{JSON}; charset=latin-1"}, 415),
        ({"Content-Type": JSON, "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": JSON, "Expect": "banana"}, 417),
    ],
)
def test_guard_requires_plain_json(
    guard: Guard, headers: dict[str, str], status: int
) -> None:
    found = 200
    try:
        guard.check_content(CIMultiDict(headers))
    except ByokError as error:
        found = error.status
    assert found == status


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
