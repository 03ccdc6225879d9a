"""The answer of /get-models: every model in every place that a picker reads."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.routing import SUMMARY_HOLDS, ListedModel
from byok.protocols.augment.models import FLAGS, OFF, ON, get_models, pauses

REGISTRIES = ("additional_chat_models", "model_registry", "model_info_registry")


def registry(answer: dict[str, Any], name: str) -> Any:
    return json.loads(answer["feature_flags"][name])


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
