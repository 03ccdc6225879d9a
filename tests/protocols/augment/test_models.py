"""The answer of /get-models: every model in every place that a picker reads."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from byok.core.model_ids import ListedModel
from byok.protocols.augment.models import get_models

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


def test_model_display_names_are_short_and_distinct() -> None:
    models = [ListedModel("a", "m"), ListedModel("b", "m"), ListedModel("a", "n")]
    answer = get_models(models, models[0])
    assert registry(answer, "model_registry") == {
        "m (a)": "byok:a:m",
        "m (b)": "byok:b:m",
        "n": "byok:a:n",
    }


def test_model_list_keeps_the_order_of_the_settings() -> None:
    models = [ListedModel("a", name) for name in "zay"]
    answer = get_models(models, models[1])
    assert [m["name"] for m in answer["models"]] == [m.id for m in models]
    info = registry(answer, "model_info_registry")
    assert [info[m.id]["priority"] for m in models] == [1, 2, 3]
    assert [info[m.id]["isDefault"] for m in models] == [False, True, False]


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
