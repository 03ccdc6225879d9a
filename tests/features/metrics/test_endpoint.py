"""GET /metrics of a daemon: guarded, off by default, and counting what was asked."""

from collections.abc import Mapping
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from byok.core.daemon.token import read_token, rotate_token
from byok.core.platform.paths import find_paths
from byok.features.journal.requests import last_entries
from byok.features.settings import MetricsSettings
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.raw import RawAnswer, put, request
from tests.fakes.upstream import FakeUpstream

ON = {"metrics": {"enabled": True}}
NO_TOKEN = (401, "unauthorized")


def asked(*headers: bytes, bearer: str = "TOKEN", **parts: bytes) -> bytes:
    """Write a request for the metrics, with the client's token unless one is given."""
    usual: dict[str, bytes] = {"method": b"GET", "target": b"/metrics", "body": b""}
    usual["token"] = b"Authorization: Bearer " + bearer.encode()
    return request(*headers, kind=b"", length=b"", **{**usual, **parts})


async def scrape(editor: Editor, **parts: bytes) -> RawAnswer:
    token = read_token(find_paths().metrics_token)
    return await put(editor, asked(bearer=token, **parts))


def values(answer: RawAnswer) -> Mapping[str, float]:
    """Return the sum of each metric over its labels."""
    assert answer.status == 200, answer.body
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(answer.body.decode()):
        for sample in family.samples:
            found[sample.name] = found.get(sample.name, 0) + sample.value
    return found


async def test_a_chat_is_counted_with_its_tokens(fake: FakeUpstream) -> None:
    async with running({**settings_for(fake.url), **ON}) as editor:
        await editor.post("/byok/index/status")  # it is open when the page asks it
        before = values(await scrape(editor))
        await editor.chat("Hello.")
        answer = await scrape(editor)
        after = values(answer)
    assert answer.header("content-type").startswith("text/plain; version=0.0.4")
    assert answer.header("cache-control") == "no-store"
    assert "byok_upstream_attempts_total" not in before
    assert after["byok_upstream_attempts_total"] == 1
    assert after["byok_first_byte_seconds_count"] == 1
    assert after["byok_open_requests"] == 1  # the question for the metrics
    assert (after["byok_open_answers"], after["byok_waiting_requests"]) == (0, 0)
    assert (after["byok_index_up"], after["byok_journal_lost_total"]) == (1, 0)
    assert b'endpoint="/chat-stream",outcome="ok",upstream="fake"' in answer.body


WRONG_HOST, FROM_A_PAGE = (421, "host_not_allowed"), (403, "origin_not_allowed")
REFUSED = {
    "the client's token": (asked(), NO_TOKEN),
    "a wrong token": (asked(bearer="x" * 43), NO_TOKEN),
    "no token": (asked(token=b""), NO_TOKEN),
    "host": (asked(host=b"Host: evil.example"), WRONG_HOST),
    "a web page": (asked(b"Origin: https://evil.example"), FROM_A_PAGE),
    "preflight": (asked(method=b"OPTIONS"), FROM_A_PAGE),
}


async def test_metrics_are_guarded_like_everything_else() -> None:
    async with running(ON, upstream="demo") as editor:
        for name, (data, expected) in REFUSED.items():
            answer = await put(editor, data)
            assert (answer.status, answer.code) == expected, name
            assert b"byok_" not in answer.body, name


async def test_the_token_of_the_metrics_opens_nothing_else() -> None:
    async with running(ON, upstream="demo") as editor:
        for target in (b"/get-models", b"/byok/settings", b"/metrics/x"):
            assert (await scrape(editor, target=target)).status == 401
        assert (await scrape(editor)).status == 200


async def test_a_rotated_token_counts_at_once() -> None:
    async with running(ON, upstream="demo") as editor:
        old = read_token(find_paths().metrics_token)
        rotate_token(find_paths().metrics_token)
        assert (await put(editor, asked(bearer=old))).status == 401
        assert (await scrape(editor)).status == 200


async def test_only_get_and_head_are_served() -> None:
    async with running(ON, upstream="demo") as editor:
        token = read_token(find_paths().metrics_token)
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{editor.daemon.url}/metrics"
        async with editor.http.head(url, headers=headers) as head:
            assert (head.status, await head.read()) == (200, b"")
        for method in (b"POST", b"PUT", b"DELETE"):
            answer = await scrape(editor, method=method)
            assert (answer.status, answer.header("allow")) == (405, "GET")


async def test_off_is_the_default_and_makes_no_token() -> None:
    async with running(upstream="demo") as editor:
        assert not find_paths().metrics_token.exists()
        assert (await scrape(editor)).status == 401
        unknown = await put(editor, asked(target=b"/no-such-path"))
        here = await put(editor, asked())
        assert (here.status, here.body) == (unknown.status, unknown.body)


async def test_a_reload_switches_the_metrics() -> None:
    async with running(upstream="demo") as editor:
        settings = editor.services.settings
        section = MetricsSettings(enabled=True)
        await editor.daemon.use(settings.model_copy(update={"metrics": section}))
        assert (await scrape(editor)).status == 200
        await editor.daemon.use(settings)
        assert (await scrape(editor)).status == 401


async def test_a_damaged_token_file_shuts_the_metrics_and_nothing_else() -> None:
    path = find_paths().metrics_token
    read_token(path)
    path.write_bytes(bytes(43))
    async with running(ON, upstream="demo") as editor:
        assert (await put(editor, asked())).status == 401
        rotate_token(path)
        assert (await scrape(editor)).status == 200


async def test_scrapes_do_not_fill_the_journal(fake: FakeUpstream) -> None:
    async with running({**settings_for(fake.url), **ON}) as editor:
        await scrape(editor)
        await editor.chat("Hello.")
    kept: list[Any] = last_entries(find_paths().journal, 10)
    assert [stored.entry.endpoint for stored in kept] == ["/chat-stream"]
