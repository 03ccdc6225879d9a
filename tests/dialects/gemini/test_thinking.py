"""How much Gemini should think: levels, budgets, and models that do not think."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, Sampling
from byok.dialects.base import Target
from byok.dialects.gemini.request import thinking_config
from byok.dialects.model_facts import ModelFacts

SHOWN = {"includeThoughts": True}


def config(model: str, effort: str = "", *, silent: bool = False, **facts: Any) -> Any:
    chat = ChatRequest((), sampling=Sampling(effort=effort), silent=silent)
    return thinking_config(chat, Target(model, facts=ModelFacts(model, **facts)))


@pytest.mark.parametrize(
    ("model", "effort", "wanted"),
    [
        ("gemini-3-pro", "medium", SHOWN | {"thinkingLevel": "LOW"}),
        ("gemini-3.5-flash", "none", SHOWN | {"thinkingLevel": "MINIMAL"}),
        ("gemini-flash-latest", "medium", SHOWN | {"thinkingLevel": "MEDIUM"}),
        ("gemini-2.5-pro", "", SHOWN),
        ("gemini-2.5-pro", "none", SHOWN | {"thinkingBudget": 128}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "high", SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash-lite", "xhigh", SHOWN | {"thinkingBudget": 24_576}),
        ("gemini-2.5-flash", "odd", SHOWN),
        ("gemini-2.0-flash", "none", {}),
        ("gemma-4", "", {}),
    ],
)
def test_gemini_effort_becomes_a_level_or_a_budget(
    model: str, effort: str, wanted: Any
) -> None:
    assert config(model, effort) == (wanted, ())


def test_gemini_facts_count_more_than_the_name() -> None:
    known = config("best", "max", efforts=("low", "medium"), thinking=True)[0]
    assert known["thinkingLevel"] == "MEDIUM"
    assert config("gemini-3-pro", thinking=False) == ({}, ())


def test_gemini_effort_of_a_model_that_does_not_think_is_told() -> None:
    _, notices = config("gemini-2.0-flash", "high")
    assert "`high`" in " ".join(notices)


def test_gemini_thoughts_that_nobody_sees_are_not_asked_for() -> None:
    assert config("gemini-3-pro", silent=True) == ({}, ())
