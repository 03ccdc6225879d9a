"""One list of models out of two."""

import json
from typing import Any

import pytest

from byok.core.routing import EndpointGroup, ListedModel
from byok.core.wire.json_body import write_json
from byok.protocols.augment.models import get_models, merge_models

REGISTRIES = ("additional_chat_models", "model_registry", "model_info_registry")
MODELS = [ListedModel("home", "qwen"), ListedModel("work", "Sonnet")]
OURS = get_models(MODELS, MODELS[0])
IDS = ["byok:home:qwen", "byok:work:Sonnet"]
CHAT = (EndpointGroup.MODELS, EndpointGroup.CHAT)


def official(**flags: Any) -> dict[str, Any]:
    """An answer of the service with three models."""
    info = {
        "late": {"displayName": "Late", "priority": 9},
        "sonnet": {"displayName": "Sonnet", "priority": 2, "isDefault": True},
        "odd": "no object",
    }
    names = {"Sonnet": "sonnet", "Late": "late"}
    return {
        "default_model": "sonnet",
        "models": [{"name": "sonnet", "x": 1}, {"name": IDS[0]}, {"name": ""}, "odd"],
        "languages": [{"name": "Theirs"}],
        "feature_flags": {
            "additional_chat_models": json.dumps(names),
            "model_registry": json.dumps(names),
            "model_info_registry": json.dumps(info),
            "enable_model_registry": False,
            "elo_model_configuration": '{"highPriorityModels": ["sonnet"]}',
            **flags,
        },
        "user": {"id": "their-user"},
    }


def registry(answer: Any, name: str) -> dict[str, Any]:
    text = answer["feature_flags"][name]
    assert isinstance(text, str), "a flag of another type discards all of them"
    found: dict[str, Any] = json.loads(text)
    return found


def test_merged_models_of_the_service_are_dropped_where_nobody_serves_them() -> None:
    merged = merge_models(official(), OURS, [EndpointGroup.MODELS])
    assert [model["name"] for model in merged["models"]] == IDS
    assert merged["default_model"] == IDS[0]
    for flag in (*REGISTRIES, "enable_model_registry", "elo_model_configuration"):
        assert merged["feature_flags"][flag] == OURS["feature_flags"][flag]
    assert "sonnet" not in json.dumps(merged)


def test_merged_models_of_the_service_follow_byoks_where_served() -> None:
    merged = merge_models(official(), OURS, CHAT)
    assert [model["name"] for model in merged["models"]] == [*IDS, "sonnet"]
    assert merged["models"][2]["x"] == 1
    assert merged["default_model"] == IDS[0]
    names = {"qwen": IDS[0], "Sonnet": IDS[1]}
    names |= {"Sonnet (official)": "sonnet", "Late": "late"}
    assert registry(merged, "model_registry") == names
    assert registry(merged, "additional_chat_models") == names
    info = registry(merged, "model_info_registry")
    assert list(info) == [*IDS, "sonnet", "late"]
    assert [entry["priority"] for entry in info.values()] == [1, 2, 3, 4]
    assert [entry["isDefault"] for entry in info.values()] == [True, *[False] * 3]
    assert info["sonnet"]["displayName"] == "Sonnet (official)"


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "null", 7, None, "[" * 100_000])
def test_merged_model_registry_that_cannot_be_read_is_empty(text: Any) -> None:
    flags = dict.fromkeys(REGISTRIES, text)
    merged = merge_models(official(**flags), OURS, CHAT)
    for name in REGISTRIES:
        assert registry(merged, name) == registry(OURS, name)


def test_merged_get_models_takes_all_else_from_the_service() -> None:
    merged = merge_models(official(enable_chat=False, new_flag="1.0"), OURS, CHAT)
    assert merged["user"] == {"id": "their-user"}
    assert merged["languages"] == [{"name": "Theirs"}]
    assert merged["user_tier"] == OURS["user_tier"]
    flags = merged["feature_flags"]
    assert (flags["enable_chat"], flags["new_flag"]) == (False, "1.0")
    assert flags["enable_agent_mode"] is True


@pytest.mark.parametrize(
    ("flag", "theirs", "group"),
    [
        ("enable_sentry", True, EndpointGroup.TELEMETRY),
        ("agent_chat_model", "sonnet", EndpointGroup.CHAT),
        ("enable_agent_mode", False, EndpointGroup.CHAT),
        ("vscode_agent_mode_min_version", "", EndpointGroup.CHAT),
        ("memories_params", "{}", EndpointGroup.CHAT),
        ("vscode_generate_commit_message_min_version", "", EndpointGroup.EDIT),
        ("bypass_language_filter", False, EndpointGroup.COMPLETION),
        ("max_trackable_file_count", 0, EndpointGroup.CONTEXT),
        ("vscode_background_agents_min_version", "1.0.0", EndpointGroup.AGENTS),
        ("notification_polling_interval_ms", 1000, EndpointGroup.ACCOUNT),
    ],
)
def test_merged_flag_that_needs_a_group_is_the_services_only_with_it(
    flag: str, theirs: Any, group: EndpointGroup
) -> None:
    answer = official(**{flag: theirs})
    without = merge_models(answer, OURS, set(EndpointGroup) - {group})
    assert without["feature_flags"][flag] == OURS["feature_flags"][flag]
    assert theirs != OURS["feature_flags"][flag]
    assert (
        merge_models(answer, OURS, set(EndpointGroup))["feature_flags"][flag] == theirs
    )


@pytest.mark.parametrize("flag", ["vscode_sentry_rate", "new_telemetry_endpoint"])
def test_merged_flag_of_telemetry_that_is_new_is_left_out(flag: str) -> None:
    answer = official(**{flag: "x"})
    assert flag not in merge_models(answer, OURS, CHAT)["feature_flags"]
    assert merge_models(answer, OURS, set(EndpointGroup))["feature_flags"][flag] == "x"


@pytest.mark.parametrize("value", ["9" * 400, "1" * 25, "1e400", "NaN", "-0.0"])
def test_merged_numbers_of_the_service_may_be_of_any_size(value: str) -> None:
    info = f'{{"q": {{"priority": {value}, "size": {value}}}}}'
    theirs = official(model_info_registry=info)
    answer = merge_models(theirs, OURS, {EndpointGroup.CHAT})
    write_json(answer)
