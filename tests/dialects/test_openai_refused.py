"""A refusal that names a parameter: what is left out, and what changes its name."""

from typing import Any

import pytest

from byok.dialects.openai_refused import refused_parameter, without

BODY = {
    "model": "m",
    "messages": [],
    "stream": True,
    "stream_options": {},
    "tools": [],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 1,
    "seed": 7,
}


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("Unsupported parameter: 'parallel_tool_calls'.", "parallel_tool_calls"),
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("`temperature` and `top_p` cannot both be specified", "temperature"),
        ("Unsupported value: 'Temperature' does not support 0.5", "temperature"),
        ("top_p must be 1", "top_p"),
        ("body.tool_choice: Input should be 'none'", "tool_choice"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
        ),
        ("Unknown field seed", "seed"),
        ("Unknown field seeds", ""),
        ("messages: at least one is required", ""),
        ("tools are not supported", ""),
        ("model not found", ""),
        ("stream must be true", ""),
        ("frequency_penalty is not supported", ""),
        ("", ""),
    ],
)
def test_the_parameter_that_is_named_is_found(message: str, name: str) -> None:
    assert refused_parameter(BODY, message, extra=["seed", "missing"]) == name


def test_only_what_was_sent_is_found() -> None:
    assert refused_parameter({"messages": []}, "temperature is not supported") == ""


def test_only_what_the_user_added_may_be_left_out_besides() -> None:
    assert refused_parameter(BODY, "Unknown field seed") == ""


@pytest.mark.parametrize(
    ("refused", "gone", "added"),
    [
        pytest.param([], [], {}, id="nothing"),
        pytest.param(["temperature", "top_p"], ["temperature", "top_p"], {}, id="two"),
        pytest.param(["unknown"], [], {}, id="what was not there"),
        pytest.param(
            ["max_tokens"], ["max_tokens"], {"max_completion_tokens": 9}, id="a cap"
        ),
        pytest.param(
            ["max_tokens", "max_completion_tokens"], ["max_tokens"], {}, id="both caps"
        ),
        pytest.param(["max_completion_tokens"], [], {}, id="the cap not sent"),
    ],
)
def test_refused_parameters_are_left_out(
    refused: list[str], gone: list[str], added: dict[str, Any]
) -> None:
    before = dict(BODY)
    kept = {key: value for key, value in BODY.items() if key not in gone}
    assert without(BODY, refused) == {**kept, **added}
    assert before == BODY


def test_the_other_cap_changes_its_name_too() -> None:
    body = {"max_completion_tokens": 9}
    assert without(body, ["max_completion_tokens"]) == {"max_tokens": 9}
