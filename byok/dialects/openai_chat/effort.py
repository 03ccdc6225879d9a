"""How much a model should reason, in the form that each vendor's API has for it.

Sources: the API references of OpenAI, OpenRouter, DeepSeek, Z.ai, Moonshot and
DashScope, and the servers' documents about `chat_template_kwargs`.
"""

from typing import Any

from byok.dialects.efforts import nearest_effort, unsent_effort
from byok.dialects.model_facts import ModelFacts
from byok.dialects.openai_chat.quirks import EffortForm

_OFF = "none"
_GRADES = ("low", "medium", "high")
_ALL = (_OFF, "minimal", *_GRADES, "xhigh", "max")  # a router maps them itself
# Tokens of reasoning; without a number the model decides.
_BUDGETS = {"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384}


def effort_fields(
    wanted: str, facts: ModelFacts, form: EffortForm
) -> tuple[dict[str, Any], str]:
    """Return the body fields for an effort, and a notice where it cannot be sent."""
    if not wanted:
        return {}, ""
    if form is EffortForm.NONE or facts.thinking is False:
        return {}, "" if wanted == _OFF else unsent_effort(wanted)
    fields = _write(wanted, facts.efforts, form)
    return fields, "" if fields else unsent_effort(wanted)


def _write(wanted: str, efforts: tuple[str, ...], form: EffortForm) -> dict[str, Any]:
    """Write an effort; {} where the model accepts nothing like it."""
    graded = tuple(effort for effort in efforts if effort != _OFF)
    is_off = wanted == _OFF and (_OFF in efforts or not efforts)
    value = nearest_effort(wanted, graded)
    level: dict[str, Any] = {"reasoning_effort": value} if value and not is_off else {}
    match form:
        case EffortForm.OBJECT:
            value = _OFF if is_off else nearest_effort(wanted, graded or _ALL)
            return {"reasoning": {"effort": value}} if value else {}
        case EffortForm.SWITCH:
            return {"thinking": {"type": _word(is_off=is_off)}, **level}
        case EffortForm.BUDGET:
            budget = _BUDGETS.get(wanted)
            most = {"thinking_budget": budget} if budget else {}
            return {"enable_thinking": not is_off, **most}
        case EffortForm.TEMPLATE:
            flags = {"enable_thinking": not is_off, "thinking": not is_off}
            return {"chat_template_kwargs": {**flags, **level}, **level}
        case _:
            accepted = efforts or (_OFF, *_GRADES)
            if wanted != _OFF:
                accepted = graded or _GRADES * (not efforts)
            value = nearest_effort(wanted, accepted)
            return {"reasoning_effort": value} if value else {}


def _word(*, is_off: bool) -> str:
    return "disabled" if is_off else "enabled"
