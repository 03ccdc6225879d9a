"""Upstreams: which are looked at, their keys, lists and models, and questions."""

from pathlib import Path
from typing import Any

import pytest

from byok.cli.checks import upstream_checks
from byok.cli.checks.examine import examine
from byok.cli.checks.results import CannotCheck, CheckState
from byok.cli.checks.upstream_checks import (
    check_choice,
    check_key,
    check_model,
    check_models,
    check_window,
    choose_upstreams,
    default_id,
    keys_looked_up,
    list_models,
    model_of,
    model_uses,
    open_upstream,
    upstream_names,
)
from byok.settings import Settings
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.doctors import (
    check_named,
    result_in,
    surroundings,
    upstream_box,
    write_settings,
)
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.upstream import FakeUpstream, dead_url

BOX = {"base_url": "http://127.0.0.1:9/v1"}

URL = "https://models.example/v1"

KEY = "canary-0123456789"

HERE = "http://127.0.0.1:9/v1"

THERE = "https://models.example/v1"


def status(name: str, url: str) -> dict[str, Any]:
    return {"upstream": name, "base_url": url}


@pytest.mark.parametrize(
    ("told", "names"),
    [
        (status("box", "http://127.0.0.1:9/v1"), ["box"]),
        (status("demo", ""), ["box"]),
        (status("groq", "https://api.groq.com/openai/v1"), ["groq", "box"]),
        (status("custom", "http://127.0.0.1:8/v1"), ["custom", "box"]),
        (status("gone", "not an address"), ["box"]),
        ({}, ["box"]),
    ],
    ids=str,
)
async def test_the_default_of_the_daemon_comes_first(
    told: dict[str, Any], names: list[str]
) -> None:
    settings = Settings(upstreams={"box": BOX})
    assert [*await choose_upstreams(settings, told)] == names


async def test_the_demo_is_none() -> None:
    settings = Settings(upstreams={"try": {"type": "demo"}})
    assert await choose_upstreams(settings, None) == {}


async def test_without_settings_a_local_server_that_answers_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answering(transports: object, apis: dict[str, object]) -> list[str]:
        assert "openai" not in apis
        return ["vllm", "lmstudio"]

    monkeypatch.setattr(upstream_checks, "find_answering", answering)
    assert [*await choose_upstreams(Settings(), None)] == ["vllm"]
    told = status("demo", "")
    assert await choose_upstreams(Settings(), told) == {}  # the daemon has chosen


async def test_a_list_is_asked_for_once(
    fake: FakeUpstream,
) -> None:
    write_settings(*upstream_box(fake.url))
    async with surroundings() as around:
        for _ in range(2):
            assert await list_models(around, "box") == ["fake-model"]
    assert len(fake.list_headers) == 1


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ([], "fake-model"),
        (["[routing]", 'default = "byok:box:m:7b"'], "m:7b"),
        (["[routing]", 'default = "m"'], "m"),
        (["[routing]", 'default = "fast"', 'aliases = {fast = "byok:box:m"}'], "m"),
        (["[routing]", 'default = "byok:other:m"'], "fake-model"),
    ],
    ids=str,
)
async def test_the_model_that_is_looked_at_is_the_default_of_its_upstream(
    fake: FakeUpstream, lines: list[str], model: str
) -> None:
    other = ["[upstreams.other]", f'base_url = "{dead_url()}"']
    write_settings(*lines, *upstream_box(fake.url), *other)
    async with surroundings() as around:
        assert await model_of(around, "box") == model


async def test_the_default_is_that_of_the_settings_without_a_daemon() -> None:
    write_settings("[routing]", 'default = "byok:ollama:m"', "[upstreams.ollama]")
    async with surroundings() as around:
        assert await default_id(around) == "byok:ollama:m"


async def test_no_model_is_known_of_an_upstream_that_is_down() -> None:
    write_settings(*upstream_box(dead_url()))
    async with surroundings() as around:
        with pytest.raises(CannotCheck):
            await model_of(around, "box")


async def test_values_of_headers_are_secrets(fake: FakeUpstream) -> None:
    headers = 'headers = { X-Extra = "very-secret-value" }'
    write_settings(*upstream_box(fake.url, headers))
    async with surroundings() as around:
        await open_upstream(around, "box")
        assert "very-secret-value" not in around.redactor("very-secret-value")


async def test_plain_http_at_an_https_address_is_named(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url.replace("http:", "https:")))
    async with surroundings() as around:
        result = await check_models(around, "box")
    assert result.state is CheckState.FAILURE
    assert "begin with http://" in result.cure


async def test_a_ca_file_that_is_none_is_named(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    junk = tmp_path / "ca.pem"
    junk.write_text("no certificate")
    url = fake.url.replace("http:", "https:")
    write_settings(*upstream_box(url, f'ca_file = "{junk}"'))
    async with surroundings() as around:
        rows = await examine(around, [check_named("model list")])
    result = result_in(rows, "model list", "box")
    assert (result.state, str(junk) in result.found) == (CheckState.FAILURE, True)
    assert "PEM file" in result.cure


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


async def test_upstreams_are_named() -> None:
    proxied = upstream_box("https://models.example/v1", 'proxy = "http://127.0.0.1:9"')
    write_settings(*proxied, "[upstreams.plain]", 'base_url = "http://127.0.0.1:9/v1"')
    async with surroundings() as around:
        assert await upstream_names(around) == ["box", "plain"]
        assert (await check_choice(around)).state is CheckState.OK


async def test_that_no_model_is_named_is_a_warning() -> None:
    write_settings("[upstreams.try]", 'type = "demo"')
    async with surroundings() as around:
        result = await check_choice(around)
    assert result.state is CheckState.WARNING
    assert "byok serve --upstream" in result.cure


async def test_that_the_daemon_uses_the_demo_is_a_warning() -> None:
    with daemon_thread():
        async with surroundings() as around:
            result = await check_choice(around)
    assert (result.state, result.found) == (
        CheckState.WARNING,
        "the daemon uses demo: no model",
    )


async def test_each_key_of_an_upstream_is_looked_up() -> None:
    write_settings(*upstream_box(THERE, 'key_names = ["work", "env:KEY_B"]'))
    async with surroundings(environ={"KEY_B": KEY}) as around:
        assert await keys_looked_up(around) == ["box/work", "box/KEY_B"]
        named = await check_key(around, "box/KEY_B")
        stored = await check_key(around, "box/work")
        assert KEY not in around.redactor(KEY)  # it is known as a secret from now on
    assert (named.state, named.found) == (CheckState.OK, "from KEY_B")
    assert stored.state is CheckState.FAILURE
    assert stored.cure == "Run: byok keys set box/work"


@pytest.mark.parametrize("url", [HERE, THERE])
async def test_an_upstream_of_the_users_own_needs_no_key(url: str) -> None:
    write_settings(*upstream_box(url))
    async with surroundings(environ={}) as around:
        result = await check_key(around, "box")
    assert (result.state, "without" in result.found) == (CheckState.OK, True)


async def test_a_hosted_preset_without_a_key_fails() -> None:
    write_settings("[upstreams.groq]")
    async with surroundings(environ={}) as around:
        result = await check_key(around, "groq")
    assert result.state is CheckState.FAILURE
    assert "byok keys set groq" in result.cure
    assert "keyring" in result.found  # it says which stores could not be read


async def test_a_failing_command_is_named_with_its_cure() -> None:
    write_settings(*upstream_box(THERE, 'api_key_cmd = ["/no/such/program"]'))
    async with surroundings() as around:
        result = await check_key(around, "box")
    assert result.state is CheckState.FAILURE
    assert "cannot be run" in result.found
    assert "[upstreams.box]" in result.cure


async def test_each_use_of_a_model_is_checked(fake: FakeUpstream) -> None:
    write_settings(
        *("[routing]", 'aliases = { quick = "byok:box:fake-model" }'),
        *("[routing.models]", 'title = "byok:box:tiny"', 'edit = "quick"'),
        *upstream_box(fake.url),
    )
    async with surroundings() as around:
        uses = await model_uses(around)
        states = {use: (await check_model(around, use)).state for use in uses}
    assert uses[0] == "default"
    assert states == {
        "default": CheckState.OK,
        "edit": CheckState.OK,
        "quick": CheckState.OK,
        "title": CheckState.FAILURE,
    }


@pytest.mark.parametrize(
    ("chosen", "state", "said"),
    [
        ("coder", CheckState.OK, "coder of box"),
        ("gpt-9", CheckState.OK, "gpt-9 of box"),
        ("codr:latest", CheckState.FAILURE, "did you mean coder:latest?"),
        ("zzz", CheckState.FAILURE, "box has no model zzz"),
        ("own", CheckState.OK, "does not list it"),
    ],
)
async def test_a_chosen_model_is_compared_with_the_list(
    fake: FakeUpstream, chosen: str, state: CheckState, said: str
) -> None:
    fake.models = ["coder:latest", "gpt-9-2026-10-01"]
    wanted = ["[routing]", f'default = "byok:box:{chosen}"']
    write_settings(*wanted, *upstream_box(fake.url, 'models = ["own"]'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert result.state is state
    assert said in result.found


async def test_a_server_cannot_make_the_comparison_slow(fake: FakeUpstream) -> None:
    fake.models = ["x" * 100_000, *(f"m{'x' * 99}{n}" for n in range(3000)), "zzzy"]
    write_settings(*upstream_box(fake.url, 'model = "zzz"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert "did you mean" not in result.found  # behind those that are compared


async def test_the_cure_names_the_key_of_the_settings(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'model = "zzz"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
    assert "correct model under [upstreams.box]" in result.cure


async def test_without_a_list_nothing_is_said_about_a_model() -> None:
    write_settings(*upstream_box(dead_url(), 'model = "m"'))
    async with surroundings() as around:
        result = await check_model(around, "default")
        with pytest.raises(CannotCheck):
            await check_window(around, "box")
    assert result.state is CheckState.NOT_CHECKED


@pytest.mark.parametrize(
    ("window", "state", "said"),
    [
        (0, CheckState.WARNING, "unknown"),
        (8_000, CheckState.FAILURE, "too small"),
        (20_000, CheckState.WARNING, "too small"),
        (200_000, CheckState.OK, "200,000 tokens of fake-model, by the settings"),
    ],
)
async def test_a_window_must_suffice_for_an_agent(
    fake: FakeUpstream, window: int, state: CheckState, said: str
) -> None:
    lines = [
        "[upstreams.box]",
        f'base_url = "{fake.url}"',
        f"context_window = {window}",
    ]
    write_settings(*lines)
    async with surroundings() as around:
        result = await check_window(around, "box")
    assert result.state is state
    assert said in result.found
    assert bool(result.cure) is (state is not CheckState.OK)


async def test_a_window_that_byok_chooses_itself_is_well() -> None:
    async with OllamaServer() as server:
        server.loaded["coder:latest"] = 4096  # by another program
        write_settings("[upstreams.ollama]", f'base_url = "{server.url}"')
        async with surroundings() as around:
            result = await check_window(around, "ollama")
    assert result.state is CheckState.OK
    assert server.requests == []  # nothing was loaded for this
