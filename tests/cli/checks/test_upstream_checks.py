"""Upstreams: which are looked at, their keys, lists and models, and questions."""

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from byok.cli.checks.base import CannotCheck, CheckResult, CheckState
from byok.cli.checks.upstream_checks import (
    asked_upstreams,
    check_chat,
    check_choice,
    check_key,
    check_model,
    check_models,
    check_streaming,
    check_tool_call,
    check_window,
    choose_upstreams,
    lookups_by_title,
    model_of,
    models_by_use,
    open_upstream,
    upstreams_of,
)
from byok.settings import Settings
from byok.wiring import upstreams as wiring
from tests.fakes.certificates import certificate, resolve_here, secure
from tests.fakes.daemon import daemon_thread
from tests.fakes.doctors import (
    judged,
    run_check,
    surroundings,
    upstream_box,
    write_settings,
)
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.probed import ProbedModel
from tests.fakes.upstream import DONE, FakeUpstream, answer, dead_url, delta, refusal

BOX = {"base_url": "http://127.0.0.1:9/v1"}


KEY = "canary-0123456789"


THERE = "https://models.example/v1"


def status(name: str, url: str) -> dict[str, Any]:
    return {"upstream": name, "base_url": url}


@pytest.mark.parametrize(
    ("told", "names"),
    [
        (status("box", "http://127.0.0.1:9/v1"), ["box"]),
        (status("groq", "https://api.groq.com/openai/v1"), ["groq", "box"]),
        (status("custom", "http://127.0.0.1:8/v1"), ["custom", "box"]),
    ],
)
async def test_the_default_of_the_daemon_comes_first(
    told: dict[str, Any], names: list[str]
) -> None:
    settings = Settings(upstreams={"box": BOX})
    assert [*await choose_upstreams(settings, told)] == names


async def test_without_settings_a_local_server_that_answers_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def answering(transports: object, apis: dict[str, object]) -> list[str]:
        assert "openai" not in apis
        return ["vllm", "lmstudio"]

    monkeypatch.setattr(wiring, "find_answering", answering)
    assert [*await choose_upstreams(Settings(), None)] == ["vllm"]
    told = status("demo", "")
    assert await choose_upstreams(Settings(), told) == {}  # the daemon has chosen


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        ([], "fake-model"),
        (["[routing]", 'default = "fast"', 'aliases = {fast = "byok:box:m"}'], "m"),
        (["[routing]", 'default = "byok:other:m"'], "fake-model"),
    ],
)
async def test_the_model_that_is_looked_at_is_the_default_of_its_upstream(
    fake: FakeUpstream, lines: list[str], model: str
) -> None:
    other = ["[upstreams.other]", f'base_url = "{dead_url()}"']
    write_settings(*lines, *upstream_box(fake.url), *other)
    async with surroundings() as around:
        assert await model_of(around, "box") == model


async def test_values_of_headers_are_secrets(fake: FakeUpstream) -> None:
    headers = 'headers = { X-Extra = "very-secret-value" }'
    write_settings(*upstream_box(fake.url, headers))
    async with surroundings() as around:
        await open_upstream(around, "box")
        assert "very-secret-value" not in around.redactor("very-secret-value")


async def test_a_refused_key_and_an_empty_list_are_named(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url))
    fake.models_error = "No such key."
    refused = await run_check(check_models, "box")
    fake.models_error, fake.models = "", []
    empty = await run_check(check_models, "box")
    judged(refused, CheckState.FAILURE, "401", "byok keys")
    judged(empty, CheckState.WARNING, cure="[upstreams.box]")


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
    result = await run_check(check_models, "box")
    judged(result, state, said)


async def test_an_ollama_without_models_is_told_to_get_one() -> None:
    async with OllamaServer() as server:
        server.models = {}
        write_settings("[upstreams.ollama]", f'base_url = "{server.url}"')
        async with surroundings() as around:
            result = await check_models(around, "ollama")
    judged(result, CheckState.WARNING, cure="ollama pull ")


async def test_that_no_model_is_named_is_a_warning() -> None:
    write_settings("[upstreams.try]", 'type = "demo"')
    result = await run_check(check_choice)
    judged(result, CheckState.WARNING, cure="byok serve --upstream")


async def test_each_key_of_an_upstream_is_looked_up() -> None:
    write_settings(*upstream_box(THERE, 'key_names = ["work", "env:KEY_B"]'))
    async with surroundings(environ={"KEY_B": KEY}) as around:
        assert [*await lookups_by_title(around)] == ["box/work", "box/KEY_B"]
        named = await check_key(around, "box/KEY_B")
        stored = await check_key(around, "box/work")
        assert KEY not in around.redactor(KEY)  # it is known as a secret from now on
    assert (named.state, named.found) == (CheckState.OK, "from KEY_B")
    assert stored.state is CheckState.FAILURE
    assert stored.cure == "Run: byok keys set box/work"


async def test_an_upstream_of_the_users_own_needs_no_key() -> None:
    write_settings(*upstream_box(THERE))
    result = await run_check(check_key, "box", environ={})
    assert (result.state, "without" in result.found) == (CheckState.OK, True)


async def test_a_hosted_preset_without_a_key_fails() -> None:
    write_settings("[upstreams.groq]")
    result = await run_check(check_key, "groq", environ={})
    judged(result, CheckState.FAILURE, cure="byok keys set groq")
    assert "keyring" in result.found  # it says which stores could not be read


async def test_each_use_of_a_model_is_checked(fake: FakeUpstream) -> None:
    write_settings(
        *("[routing]", 'aliases = { quick = "byok:box:fake-model" }'),
        *("[routing.models]", 'title = "byok:box:tiny"', 'edit = "quick"'),
        *upstream_box(fake.url),
    )
    async with surroundings() as around:
        uses = [*await models_by_use(around)]
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
        ("gpt-9", CheckState.OK, "box lists the model gpt-9"),
        ("codr:latest", CheckState.FAILURE, "Did you mean coder:latest?"),
        ("own", CheckState.OK, "does not list it"),
    ],
)
async def test_a_chosen_model_is_compared_with_the_list(
    fake: FakeUpstream, chosen: str, state: CheckState, said: str
) -> None:
    fake.models = ["coder:latest", "gpt-9-2026-10-01"]
    wanted = ["[routing]", f'default = "byok:box:{chosen}"']
    write_settings(*wanted, *upstream_box(fake.url, 'models = ["own"]'))
    result = await run_check(check_model, "default")
    assert result.state is state
    assert said in f"{result.found} {result.cure}"


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
    result = await run_check(check_window, "box")
    judged(result, state, said)


@pytest.mark.parametrize(
    ("lines", "loaded", "state", "said", "cure"),
    [
        ([], 4096, CheckState.OK, "of coder", ""),  # byok loads it with its own window
        (
            ['dialect = "openai_chat"'],
            4096,
            CheckState.FAILURE,
            "its server cuts that of coder to 4,096 tokens, without a word",
            "OLLAMA_CONTEXT_LENGTH",
        ),
        (
            ["num_ctx = 20000"],
            0,
            CheckState.WARNING,
            "num_ctx cuts that of coder to 20,000 of 131,072",
            "Raise num_ctx",
        ),
    ],
)
async def test_a_window_that_is_cut_is_named(
    lines: list[str], loaded: int, state: CheckState, said: str, cure: str
) -> None:
    async with OllamaServer() as server:
        if loaded:
            server.loaded["coder:latest"] = loaded  # by another program
        url = f"{server.url}/v1" if "openai" in str(lines) else server.url
        named = ["[upstreams.ollama]", f'base_url = "{url}"', 'model = "coder"']
        write_settings(*named, *lines)
        async with surroundings() as around:
            result = await check_window(around, "ollama")
    judged(result, state, said, cure)
    assert server.requests == []  # nothing was loaded for this


async def test_a_key_that_the_daemon_lacks_is_named(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'api_key_env = "KEY_OF_BOX"'))
    with daemon_thread(upstream="", environ={}):
        async with surroundings(environ={"KEY_OF_BOX": KEY}) as around:
            result = await check_key(around, "box")
    assert result.state is CheckState.FAILURE
    assert "running daemon does not have" in result.found
    assert "byok restart" in result.cure


async def test_a_name_without_an_address_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve_here(monkeypatch)
    write_settings(*upstream_box("https://models.invalid/v1"))
    result = await run_check(check_models, "box")
    assert "the name models.invalid could not be found" in result.found
    assert "base_url" in result.cure


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the refused handshake
@pytest.mark.parametrize(
    ("days", "cure"), [(9, "set ca_file to its certificate"), (-1, "clock")]
)
async def test_a_certificate_that_is_not_trusted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, cure: str
) -> None:
    resolve_here(monkeypatch)
    file = certificate(tmp_path, "model.test", days=days)
    trusts = [f'ca_file = "{file}"'] if days < 0 else []
    async with secure(file, "model.test") as (_, url):
        write_settings(*upstream_box(url, *trusts))
        async with surroundings() as around:
            result = await check_models(around, "box")
    assert (result.state, "is not trusted" in result.found) == (
        CheckState.FAILURE,
        True,
    )
    assert cure in result.cure


CHECKS = (check_chat, check_streaming, check_tool_call)


@pytest.fixture(autouse=True)
def _settings(fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'model = "m"'))


async def test_nothing_is_asked_unless_it_is_wanted(fake: FakeUpstream) -> None:
    async with surroundings() as around:
        result = await asked_upstreams(around)  # one row, whatever there is
    assert isinstance(result, CheckResult)
    assert result.state is CheckState.NOT_CHECKED
    assert result.cure == "byok doctor --ask-models"
    assert fake.requests == []


async def test_a_model_that_does_all_takes_two_requests(fake: FakeUpstream) -> None:
    ProbedModel().serve(fake)
    async with surroundings(asks_models=True) as around:
        assert [*await upstreams_of(around)] == ["box"]
        results = [await check_chat(around, "box")]
        with contextlib.suppress(CannotCheck):  # on a machine that is too busy to tell
            results.append(await check_streaming(around, "box"))
        results.append(await check_tool_call(around, "box"))
    assert {result.state for result in results} == {CheckState.OK}
    assert len(fake.requests) == 2


async def test_an_answer_in_one_piece_is_a_warning(fake: FakeUpstream) -> None:
    fake.play([b"".join([delta(content="1 2 3"), delta(finish="stop"), DONE])])
    async with surroundings(asks_models=True) as around:
        assert (await check_chat(around, "box")).state is CheckState.OK
        with contextlib.suppress(CannotCheck):  # on a machine that is too busy to tell
            result = await check_streaming(around, "box")
            assert result.state is CheckState.WARNING
            assert "proxy" in result.cure


async def test_a_refusal_fails_and_the_rest_is_not_asked(fake: FakeUpstream) -> None:
    fake.play(refusal(404, "model m not found"))
    async with surroundings(asks_models=True) as around:
        result = await check_chat(around, "box")
        for check in CHECKS[1:]:
            with pytest.raises(CannotCheck, match="no answer"):
                await check(around, "box")
    assert result.state is CheckState.FAILURE
    assert result.cure


async def test_a_cure_is_one_command_whatever_the_model_is_called(
    fake: FakeUpstream,
) -> None:
    write_settings(*upstream_box(fake.url, 'model = "a b; id"'))
    fake.play(answer(""))
    result = await run_check(check_chat, "box", asks_models=True)
    assert result.state is CheckState.FAILURE
    assert shlex.split(result.cure) == ["byok", "probe", "box/a b; id"]


@pytest.mark.parametrize(
    ("model", "state"),
    [
        (replace(ProbedModel(), calls="never"), CheckState.WARNING),
        (replace(ProbedModel(), tools=False), CheckState.FAILURE),
        (replace(ProbedModel(), calls="if it must"), CheckState.OK),
    ],
)
async def test_a_model_without_tool_calls_is_named(
    fake: FakeUpstream, model: ProbedModel, state: CheckState
) -> None:
    model.serve(fake)
    result = await run_check(check_tool_call, "box", asks_models=True)
    assert result.state is state
