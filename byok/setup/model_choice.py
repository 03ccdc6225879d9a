"""Choose models by purpose among those that an upstream lists, and say why."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from byok.dialects.default_models import (
    choose_chat_model,
    choose_job_model,
    patterns_of,
)
from byok.dialects.fim.templates import template_of
from byok.dialects.model_facts import ModelFacts
from byok.purposes import Purpose

DEFAULT = "default"
RERANK = "rerank"
_SMALL_JOBS = (Purpose.COMMIT.value, Purpose.TITLE.value, RERANK)


class ChosenModel(NamedTuple):
    """A model for a purpose, and the reason; "" stands for that of chats."""

    purpose: str
    model: str
    reason: str


def choose_models(vendor: str, models: Sequence[ModelFacts]) -> list[ChosenModel]:
    """Return a model for chats, small jobs and completions; none without models.

    `vendor` is the name of a preset. Summaries and prompts to enhance stay with the
    model of the chat, which has the conversation in its cache.
    """
    chat = choose_chat_model(vendor, models)
    if not chat:
        return []
    facts = next(model for model in models if model.id == chat)
    chosen = [ChosenModel(DEFAULT, chat, _reason_for_chat(facts, len(models)))]
    small = choose_job_model(vendor, Purpose.COMMIT, models)
    chosen += _small_jobs(chat, small)
    filling = choose_job_model(vendor, Purpose.COMPLETION, models)
    chosen.append(_completion(vendor, chat, filling))
    return chosen


def _reason_for_chat(facts: ModelFacts, number: int) -> str:
    known = ["the only one listed" if number == 1 else f"the best of {number} for code"]
    if facts.tools:
        known.append("takes tools")
    if facts.window:
        known.append(f"window of {facts.window:,} tokens")
    return ", ".join(known)


def _small_jobs(chat: str, small: str) -> Iterator[ChosenModel]:
    if small and small != chat:
        for job in _SMALL_JOBS:
            yield ChosenModel(job, small, "quick and cheap")


def _completion(vendor: str, chat: str, model: str) -> ChosenModel:
    """Return the model for inline completions; its own one fills gaps, or is small."""
    purpose = Purpose.COMPLETION.value
    if model and model == chat:
        return ChosenModel(
            purpose, "", "the model of chats, the quickest here with FIM"
        )
    if not model:
        return ChosenModel(
            purpose,
            "",
            "the model of chats: byok knows none here that fills gaps (FIM)",
        )
    fills = bool(patterns_of(vendor).completion) or template_of(model) is not None
    return ChosenModel(
        purpose,
        model,
        "fills gaps (FIM)" if fills else "quick; none with FIM is listed",
    )
