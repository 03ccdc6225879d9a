"""Efforts in the form of each vendor, and what is said where there is none."""

from typing import Any

import pytest

from byok.dialects.families import family_facts
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.quirks import QUIRKS, EffortForm
from byok.dialects.openai_chat.request import effort_fields

FIELD, OBJECT, SWITCH, BUDGET, TEMPLATE = (
    EffortForm.FIELD,
    EffortForm.OBJECT,
    EffortForm.SWITCH,
    EffortForm.BUDGET,
    EffortForm.TEMPLATE,
)


def fields(form: EffortForm, wanted: str, *efforts: str) -> dict[str, Any]:
    found, notice = effort_fields(wanted, ModelFacts("m", efforts=efforts), form)
    assert bool(found) or notice
    return found


def test_effort_of_a_model_that_can_only_be_switched_off_is_not_sent() -> None:
    found, notice = effort_fields("high", ModelFacts("m", efforts=("none",)), FIELD)
    assert found == {}
    assert "high" in notice


@pytest.mark.parametrize(
    ("form", "wanted", "efforts", "sent"),
    [
        (OBJECT, "max", (), {"reasoning": {"effort": "max"}}),
        (OBJECT, "none", (), {"reasoning": {"effort": "none"}}),
        (OBJECT, "none", ("low", "high"), {"reasoning": {"effort": "low"}}),
        (SWITCH, "none", (), {"thinking": {"type": "disabled"}}),
        (SWITCH, "low", (), {"thinking": {"type": "enabled"}}),
        (
            SWITCH,
            "medium",
            ("low", "high", "max"),
            {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
        ),
        (
            SWITCH,
            "none",
            ("low", "high", "max"),
            {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
        ),
        (BUDGET, "none", (), {"enable_thinking": False}),
        (BUDGET, "low", (), {"enable_thinking": True, "thinking_budget": 4096}),
        (BUDGET, "max", (), {"enable_thinking": True}),
        (
            TEMPLATE,
            "none",
            (),
            {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
        (
            TEMPLATE,
            "high",
            ("low", "high"),
            {
                "chat_template_kwargs": {
                    "enable_thinking": True,
                    "thinking": True,
                    "reasoning_effort": "high",
                },
                "reasoning_effort": "high",
            },
        ),
    ],
)
def test_effort_has_the_form_of_the_vendor(
    form: EffortForm, wanted: str, efforts: tuple[str, ...], sent: dict[str, Any]
) -> None:
    assert fields(form, wanted, *efforts) == sent


@pytest.mark.parametrize(
    ("facts", "form"),
    [
        (ModelFacts("m", thinking=False), FIELD),
        (ModelFacts("m"), EffortForm.NONE),
    ],
)
def test_effort_without_a_setting_is_a_notice(
    facts: ModelFacts, form: EffortForm
) -> None:
    assert effort_fields("none", facts, form) == ({}, "")
    found, notice = effort_fields("high", facts, form)
    assert found == {}
    assert "`high`" in notice


@pytest.mark.parametrize(
    ("model", "vendor", "fields"),
    [
        ("glm-5.2", "zai", {"thinking": {"type": "disabled"}}),
        ("glm-5.1", "zai", {"thinking": {"type": "disabled"}}),
        ("deepseek-v4-pro", "deepseek", {"thinking": {"type": "disabled"}}),
        ("deepseek-v4-flash", "volcengine", {"thinking": {"type": "disabled"}}),
        ("deepseek/deepseek-v4-pro", "openrouter", {"reasoning": {"effort": "none"}}),
        ("deepseek-ai/DeepSeek-V4", "siliconflow", {"enable_thinking": False}),
        (
            "glm-5.3",  # it cannot be switched off
            "zai",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "low"},
        ),
    ],
)
def test_no_effort_switches_thinking_off(
    model: str, vendor: str, fields: dict[str, Any]
) -> None:
    form = QUIRKS[vendor].effort
    assert effort_fields("none", family_facts(model), form) == (fields, "")
