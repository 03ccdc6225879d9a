"""Gemini's thinkingConfig: a level for Gemini 3 and later, a budget for Gemini 2.5.

Source: Gemini API, Thinking (ranges of the budget, levels by model).
"""

import re
from dataclasses import dataclass
from typing import Any

from byok.chat import ChatRequest
from byok.dialects.base import Target
from byok.dialects.efforts import nearest_effort, unsent_effort

_THINKS = re.compile(r"gemini-(?:2\.5|[3-9]|\d\d|\w+-latest|latest)")
_BUDGET_ONLY = re.compile(r"gemini-2\.5")
# Of models whose levels nobody names.
_LEVELS = ("low", "high")
_FLASH_LEVELS = ("minimal", "low", "medium", "high")
_ALL_LEVELS = ("minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class _Range:
    """Tokens that a model may think; `off` where 0 is accepted as well."""

    least: int
    most: int
    off: bool = True


# The first name that a model's contains counts.
_RANGES = {
    "flash-lite": _Range(512, 24_576),
    "flash": _Range(1, 24_576),
    "": _Range(128, 32_768, off=False),
}
_BUDGETS = {
    "none": 0,
    "minimal": 512,
    "low": 1024,
    "medium": 8192,
    "high": 24_576,
    "xhigh": 32_768,
    "max": 32_768,
}


def thinking_config(
    chat: ChatRequest, target: Target
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the thinkingConfig, which may be empty, and notices for the user.

    Summaries of the thoughts are asked for where someone sees them.
    """
    effort, model = chat.sampling.effort, target.model.lower()
    thinks = target.facts.thinking
    if thinks is None:
        thinks = bool(_THINKS.search(model))
    if not thinks:
        wanted = effort not in ("", "none")
        return {}, ((unsent_effort(effort),) if wanted else ())
    config: dict[str, Any] = {} if chat.silent else {"includeThoughts": True}
    if _BUDGET_ONLY.search(model):
        budget = _budget(effort, model)
        if budget is not None:
            config["thinkingBudget"] = budget
        if budget == 0:
            config.pop("includeThoughts", None)
    elif level := nearest_effort(effort, _levels(target)):
        config["thinkingLevel"] = level.upper()
    return config, ()


def _levels(target: Target) -> tuple[str, ...]:
    known = tuple(e for e in target.facts.efforts if e in _ALL_LEVELS)
    return known or (_FLASH_LEVELS if "flash" in target.model.lower() else _LEVELS)


def _budget(effort: str, model: str) -> int | None:
    if effort not in _BUDGETS:
        return None
    limits = next(limits for name, limits in _RANGES.items() if name in model)
    if effort == "none" and limits.off:
        return 0
    return min(max(_BUDGETS[effort], limits.least), limits.most)
