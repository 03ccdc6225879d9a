"""Addresses, certificates and lists of models."""

import asyncio
from pathlib import Path

import pytest

from byok.doctor import upstreams
from byok.doctor.results import CannotCheck, CheckState
from byok.doctor.upstreams import (
    check_choice,
    check_models,
    check_tls,
    tls_upstreams,
    upstream_names,
)
from tests.fakes.certificates import certificate, resolve_here, secure
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.doctors import surroundings, upstream_box, write_settings
from tests.fakes.upstream import FakeUpstream, dead_url


async def test_a_certificate_of_an_own_authority_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_here(monkeypatch)
    file = certificate(tmp_path, "model.test")
    async with secure(file, "model.test") as (_, url):
        write_settings(*upstream_box(url, f'ca_file = "{file}"'))
        async with surroundings() as around:
            assert await tls_upstreams(around) == ["box"]
            result = await check_tls(around, "box")
    assert (result.state, result.found[:5]) == (CheckState.OK, "TLSv1")


@pytest.mark.parametrize("junk", [True, False])
async def test_a_ca_file_that_does_not_help_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, junk: bool
) -> None:
    resolve_here(monkeypatch)
    file = certificate(tmp_path, "model.test")
    other = certificate(tmp_path, "other.test")
    if junk:
        other.write_text("no certificate")
    async with secure(file, "model.test") as (_, url):
        write_settings(*upstream_box(url, f'ca_file = "{other}"'))
        async with surroundings() as around:
            result = await check_tls(around, "box")
    assert result.state is CheckState.FAILURE
    assert "ca_file" in result.cure if junk else str(other) in result.cure


async def test_plain_http_at_an_https_address_is_named(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url.replace("http:", "https:")))
    async with surroundings() as around:
        result = await check_tls(around, "box")
    assert "plain HTTP" in result.found
    assert "http://" in result.cure


@pytest.mark.parametrize("closes", [False, True])
async def test_a_server_that_never_answers_tls_is_named(
    monkeypatch: pytest.MonkeyPatch, *, closes: bool
) -> None:
    """Many a server of plain HTTP waits for the rest of a request, or hangs up."""
    monkeypatch.setattr(upstreams, "CONNECT_SECONDS", 0.2)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not closes:
            await reader.read()  # until the check hangs up
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        write_settings(*upstream_box(f"https://127.0.0.1:{port}"))
        async with surroundings() as around:
            result = await check_tls(around, "box")
    assert result.state is CheckState.FAILURE
    assert "answers no TLS" in result.found
    assert "http://" in result.cure


async def test_a_server_that_is_down_is_not_asked_further() -> None:
    write_settings(*upstream_box(dead_url()))
    async with surroundings() as around:
        with pytest.raises(CannotCheck, match="no connection"):
            await check_models(around, "box")


async def test_a_refused_key_and_an_empty_list_are_named(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url))
    fake.models_error = "No such key."
    async with surroundings() as around:
        refused = await check_models(around, "box")
    fake.models_error, fake.models = "", []
    async with surroundings() as around:
        empty = await check_models(around, "box")
    assert refused.state is CheckState.FAILURE
    assert "401" in refused.found
    assert "byok keys" in refused.cure
    assert empty.state is CheckState.WARNING
    assert "[upstreams.box]" in empty.cure


@pytest.mark.parametrize(
    ("lines", "state", "said"),
    [
        (['models = ["a", "b"]'], CheckState.OK, "2 of the settings"),
        ([], CheckState.WARNING, "the settings name no model"),
    ],
)
async def test_a_server_without_a_list_may_answer_chats(
    fake: FakeUpstream, lines: list[str], state: CheckState, said: str
) -> None:
    write_settings(*upstream_box(fake.url.replace("/v1", "/v2"), *lines))
    async with surroundings() as around:
        result = await check_models(around, "box")
    assert result.state is state
    assert said in result.found


async def test_upstreams_are_named_and_a_proxy_stands_before_tls() -> None:
    proxied = upstream_box("https://models.example/v1", 'proxy = "http://127.0.0.1:9"')
    write_settings(*proxied, "[upstreams.plain]", 'base_url = "http://127.0.0.1:9/v1"')
    async with surroundings() as around:
        assert await upstream_names(around) == ["box", "plain"]
        assert await tls_upstreams(around) == []
        assert (await check_choice(around, "")).state is CheckState.OK


async def test_that_no_model_is_named_is_a_warning() -> None:
    write_settings("[upstreams.try]", 'type = "demo"')
    async with surroundings() as around:
        result = await check_choice(around, "")
    assert result.state is CheckState.WARNING
    assert "byok serve --upstream" in result.cure


async def test_that_the_daemon_uses_the_demo_is_a_warning() -> None:
    with daemon_thread():
        async with surroundings() as around:
            result = await check_choice(around, "")
    assert (result.state, result.found) == (
        CheckState.WARNING,
        "the daemon uses demo: no model",
    )
