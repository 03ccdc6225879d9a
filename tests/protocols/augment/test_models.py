"""The answer of /get-models: every model in every place that a picker reads."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.routing import SUMMARY_HOLDS, EndpointGroup, ListedModel
from byok.core.wire.json_body import write_json
from byok.protocols.augment.models import (
    FLAGS,
    OFF,
    ON,
    get_models,
    merge_models,
    pauses,
)

REGISTRIES = ("additional_chat_models", "model_registry", "model_info_registry")


def registry(answer: Any, name: str) -> dict[str, Any]:
    text = answer["feature_flags"][name]
    assert isinstance(text, str), "a flag of another type discards all of them"
    found: dict[str, Any] = json.loads(text)
    return found


MODELS = st.builds(
    ListedModel,
    st.sampled_from(["home", "x"]),
    st.sampled_from(["m", "m (x)", "m (home)", "a/b:c", "it's", 'a "b"', "a\\b"]),
)


@given(st.lists(MODELS, max_size=8), MODELS)
def test_every_model_is_in_every_registry(
    models: list[ListedModel], default: ListedModel
) -> None:
    answer = get_models(models, default)
    names = [model["name"] for model in answer["models"]]
    assert answer["default_model"] in names
    assert len(set(names)) == len(names)
    fit = {m.id for m in (*models, default) if not set(m.model) & set("'\"\\")}
    assert fit <= set(names)
    assert set(registry(answer, "additional_chat_models").values()) == fit
    assert set(registry(answer, "model_registry").values()) == fit
    assert set(registry(answer, "model_info_registry")) == fit


def test_model_name_has_no_quote_that_an_old_client_would_turn() -> None:
    answer = get_models([ListedModel("x", 'a "b"')], ListedModel("x", "it's"))
    for name in REGISTRIES:
        raw = answer["feature_flags"][name]
        assert json.loads(raw.replace("'", '"')) == {}


def test_a_model_has_the_fields_that_clients_read() -> None:
    [model] = get_models([], ListedModel("a", "m"))["models"]
    assert model == {
        "name": "byok:a:m",
        "internal_name": "byok:a:m",
        "suggested_prefix_char_count": 8000,
        "suggested_suffix_char_count": 4000,
        "completion_timeout_ms": 5000,
    }
    info = registry(get_models([], ListedModel("a", "m")), "model_info_registry")
    assert info["byok:a:m"].keys() >= {
        "displayName", "shortName", "description", "disabled", "humanName",
    }  # fmt: skip


def test_model_list_answer_is_complete() -> None:
    answer = get_models([], ListedModel("a", "m"))
    assert answer["user_tier"] == "ENTERPRISE_TIER"
    assert answer["user"].keys() >= {"id", "email"}
    assert answer["languages"]
    assert answer["feature_flags"]["enable_model_registry"] is True
    assert registry(answer, "elo_model_configuration") == {
        "highPriorityModels": [],
        "regularBattleModels": [],
        "highPriorityThreshold": 0,
    }
    assert answer["bootstrap_settings"] == {
        "repository_allowlist_settings": {
            "repository_urls": [],
            "is_deny_list": False,
        }
    }


def test_model_list_flags_follow_the_settings() -> None:
    default = ListedModel("a", "m")
    wanted = {"enable_chat_input_inline_completion": True}
    usual = get_models([], default)["feature_flags"]
    changed = get_models([], default, wanted)["feature_flags"]
    assert changed == {**usual, **wanted} != usual


# The flags that clients expect are there, each of its own type
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        (
            "history_summary_params",
            {
                "prompt",
                "history_tail_size_tokens_to_exclude",
                "max_history_chars",
                "input_budget_trigger_ratio",
            },
        ),
        ("memories_params", {"upper_bound_size"}),  # the remember tool needs it
    ],
)
def test_a_json_flag_is_a_text_that_parses(name: str, keys: set[str]) -> None:
    value = FLAGS[name]
    assert isinstance(value, str)
    assert json.loads(value).keys() == keys


def test_feature_flag_tells_clients_what_a_summary_must_hold() -> None:
    value = FLAGS["history_summary_params"]
    assert isinstance(value, str)
    prompt = json.loads(value)["prompt"]
    # By these words a summary is known among the silent jobs.
    assert "a clear and concise summary of our conversation so far" in prompt
    assert SUMMARY_HOLDS in prompt
    assert "'" not in value, "one client reads a flag's JSON with the quotes swapped"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vscode_min_version", OFF),  # a forced upgrade would lock the user out
        ("enable_agent_auto_mode", True),  # false hides the Auto toggle
        ("smart_paste_precompute_mode", "off"),  # precomputing costs model calls
        ("vscode_next_edit_min_version", OFF),  # asks a model while one types
        ("enable_chat_input_inline_completion", False),  # so does this
        ("bypass_language_filter", True),  # else some files have no completions
        ("enable_sentry", False),
        ("cli_enable_sentry", False),
        ("beachhead_enable_sentry", False),
        ("enable_hindsight", False),
        ("fraud_sign_endpoints", False),
        ("allow_client_feature_flag_overrides", False),
    ],
)
def test_a_flag_that_would_do_harm_has_its_safe_value(name: str, value: object) -> None:
    assert FLAGS[name] == value


def test_feature_flags_of_automatic_requests_are_off_and_can_be_switched_on() -> None:
    off = pauses(chat_input=False, next_edit=False)
    assert {name: FLAGS[name] for name in off} == off
    on = pauses(chat_input=True, next_edit=True)
    assert on == {
        "enable_chat_input_inline_completion": True,
        "vscode_next_edit_min_version": ON,
    }


def test_feature_flags_are_switches_or_gates_by_their_names() -> None:
    """One flag of another type, and clients discard all of them."""
    for name, value in FLAGS.items():
        if name.endswith("_min_version"):
            assert value in (ON, OFF), name
        elif name.startswith("enable_"):
            assert isinstance(value, bool), name


LISTED = [ListedModel("home", "qwen"), ListedModel("work", "Sonnet")]

OURS = get_models(LISTED, LISTED[0])

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
