"""/get-models where the official service has its say."""

import asyncio
import json
from typing import Any

import pytest

from tests.fakes.official import (
    HASTY,
    FakeOfficial,
    between,
    told,
    whole,
)
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import FakeUpstream, Script

THEIRS: dict[str, Any] = {
    "default_model": "claude-sonnet",
    "models": [{"name": "claude-sonnet"}, {"name": "gpt-5"}],
    "feature_flags": {
        "enable_chat": True,
        "brand_new_flag": "1.2.3",
        "enable_sentry": True,
        "model_info_registry": '{"claude-sonnet": {"displayName": "Sonnet"}}',
        "additional_chat_models": '{"Sonnet": "claude-sonnet"}',
        "model_registry": '{"Sonnet": "claude-sonnet"}',
    },
    "user_tier": "THEIR_TIER",
    "user": {"id": "their-user"},
}


async def models_of(
    official: FakeOfficial, fake: FakeUpstream, **groups: str
) -> dict[str, Any]:
    async with between(official, fake, {"models": "official", **groups}) as editor:
        await editor.services.catalog.settle(PATIENCE)
        got = await editor.post("/get-models")
    assert got.status == 200
    merged: dict[str, Any] = got.json
    return merged


def ids_everywhere(merged: dict[str, Any]) -> list[list[str]]:
    flags = merged["feature_flags"]
    return [
        [model["name"] for model in merged["models"]],
        list(json.loads(flags["model_info_registry"])),
        list(json.loads(flags["model_registry"]).values()),
        list(json.loads(flags["additional_chat_models"]).values()),
    ]


async def test_their_list_is_the_base_and_their_models_go(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/get-models", b"{}", whole(json.dumps(THEIRS).encode()))
    merged = await models_of(official, fake)
    assert merged["default_model"] == "byok:fake:m"
    ours = ["byok:fake:m", "byok:fake:fake-model"]
    assert ids_everywhere(merged) == [ours] * 4
    assert merged["user_tier"] == "THEIR_TIER"
    assert merged["feature_flags"]["brand_new_flag"] == "1.2.3"
    assert merged["feature_flags"]["enable_sentry"] is False


async def test_what_is_served_here_is_not_switched_off_there(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    off = {"enable_agent_mode": False, "vscode_agent_mode_min_version": ""}
    theirs = {**THEIRS, "feature_flags": {**THEIRS["feature_flags"], **off}}
    official.expect("/get-models", b"{}", whole(json.dumps(theirs).encode()))
    merged = await models_of(official, fake, completion="official")
    assert merged["feature_flags"]["enable_agent_mode"] is True
    assert merged["feature_flags"]["vscode_agent_mode_min_version"] == "0.0.0"


async def test_their_models_stay_behind_ours_where_they_answer_chats(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/get-models", b"{}", whole(json.dumps(THEIRS).encode()))
    merged = await models_of(official, fake, chat="official", telemetry="official")
    assert merged["default_model"] == "byok:fake:m"
    names, *registries = ids_everywhere(merged)
    ours = ["byok:fake:m", "byok:fake:fake-model"]
    assert names == [*ours, "claude-sonnet", "gpt-5"]
    assert registries == [[*ours, "claude-sonnet"]] * 3
    assert merged["feature_flags"]["enable_sentry"] is True


@pytest.mark.parametrize(
    "script",
    [
        whole(b"not JSON"),
        whole(b"[]"),
        whole(b"{}"),
        whole(b"", 500),
        whole(b"", 401),
        Script([b'{"default'], end="reset"),
        Script([b'{"default_model": "x"', 5.0]),
    ],
    ids=["no JSON", "a list", "no flags", "500", "401", "cut", "slow"],
)
async def test_official_model_list_that_fails_leaves_byoks_own(
    official: FakeOfficial,
    fake: FakeUpstream,
    script: Script,
    caplog: pytest.LogCaptureFixture,
) -> None:
    official.expect("/get-models", b"{}", script)
    groups = {"models": "official", "chat": "official"}
    async with between(official, fake, groups, timing=HASTY) as editor:
        await editor.services.catalog.settle(PATIENCE)
        got = await asyncio.wait_for(editor.post("/get-models"), PATIENCE)
        own = await editor.post("/byok/catalog")
    assert {m["name"] for m in got.json["models"]} == {
        m["id"] for m in own.json["models"]
    }
    assert got.json["default_model"] == own.json["default"] == "byok:fake:m"
    assert len(told(caplog)) == 1


async def test_official_model_list_timeout(
    official: FakeOfficial, fake: FakeUpstream
) -> None:
    official.expect("/get-models", silent=True)
    async with between(official, fake, {"models": "official"}, timing=HASTY) as editor:
        got = await asyncio.wait_for(editor.post("/get-models"), PATIENCE)
        again = await editor.post("/get-models")
    assert got.json["default_model"] == again.json["default_model"] == "byok:fake:m"
    assert official.paths == ["/get-models"], "it is not waited for twice"
