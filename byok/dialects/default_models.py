"""Default models: patterns of good ones for each vendor, for chats and small jobs.

A default is chosen only among the models that an upstream lists. A good one for chats
answers an agent well and is not the dearest; one for small jobs is quick and cheap.
"""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import dropwhile, takewhile, zip_longest
from typing import NamedTuple, Self

from byok.core.routing import Purpose
from byok.dialects.families import FAMILIES, family_name
from byok.dialects.fim_codecs import next_edit_codecs
from byok.dialects.fim_templates import FimMode, fim_profile_of, template_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.next_edit_formats import format_of
from byok.dialects.presets import (
    ANY_MODELS,
    HOST_MODELS,
    LOCAL_MODELS,
    PRESETS,
    DefaultModels,
    preset_of,
)

# Names of models that do not chat, or not about code.
_NO_CHAT = re.compile(
    r"embed|rerank|whisper|tts|dall-e|moderation|transcri|image|audio|speech|realtime"
    r"|guard|bge-|davinci|babbage|sora|veo|imagen|ocr|lyria|robotics|compound|orpheus"
    r"|next-edit|zeta-?2|mercury-edit",
    re.IGNORECASE,
)
# Words, sizes as one word, and each part of a version.
_NAME = re.compile(r"\d+(?:\.\d+)?[bk](?![a-z])|[a-z]+|\d+")
_NICKNAMES = dict.fromkeys(("sonnet", "opus", "haiku"), "claude")
_NO_FAMILY = frozenset(
    ("auto", "best", "chat", "default", "fast", "inherit", "latest", "model", "smart")
)


def patterns_of(vendor: str) -> DefaultModels:
    """Return the patterns of a preset, by its name."""
    preset = PRESETS.get(vendor)
    if preset is None:
        return ANY_MODELS
    own = preset.models or preset_of(preset.vendor).models
    return own or (LOCAL_MODELS if preset.local else HOST_MODELS)


def choose_chat_model(vendor: str, models: Sequence[ModelFacts]) -> str:
    """Return the best of the listed models for chats and agents, "" without any.

    Where no pattern matches it is one that takes tools, else one that chats, else the
    first one.
    """
    talking = [m for m in models if m.chats is not False and not _is_no_chat(m)]
    usable = [m for m in talking if m.tools is not False]
    best = _best(patterns_of(vendor).chat, usable)
    rest = (*(m.id for m in (*usable, *talking, *models)), "")
    return best or rest[0]


def choose_job_model(
    vendor: str, purpose: Purpose, models: Sequence[ModelFacts]
) -> str:
    """Return the best of the listed models for a job, "" for that of the chat.

    Commit messages and titles are short and need nothing of the conversation.
    Summaries and prompts to enhance come with it: the model of the chat has it in its
    cache, and in a window that is large enough.
    """
    patterns = patterns_of(vendor)
    talking = [m for m in models if m.chats is not False and not _is_no_chat(m)]
    match purpose:
        case Purpose.COMMIT | Purpose.TITLE:
            return _best(patterns.small, talking)
        case Purpose.COMPLETION:
            found = _best(patterns.completion, talking)
            fills = fim_profile_of(vendor).modes[0] is not FimMode.CHAT
            filling = [m.id for m in models if fills and template_of(m.id)]
            quickest = min(filling, key=_billions, default="")
            return found or quickest or _best(patterns.small, talking)
        case Purpose.NEXT_EDIT:
            served = next_edit_codecs(vendor)
            made = [m.id for m in models if format_of(m.id, served)]
            return min(made, key=_billions, default="")
        case _:
            return ""


def _billions(model: str) -> float:
    """Return how many billions of parameters a name tells, infinity for none."""
    told = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", model.lower())
    return float(told[1]) if told else math.inf


def find_closest(wanted: str, models: Sequence[str]) -> int | None:
    """Return the index of the model of the same family whose name is closest, or None.

    Of a family are models whose vendor calls them so, as sonnet4.5 and claude-haiku-4.
    The closest has most words in common, then the nearest version (the newest, where
    none is wanted), and fewest words of its own, which often mean a smaller model.
    """
    asked = _ModelName.parse(wanted)
    if not asked.family:
        return None

    def distance(index: int) -> tuple[float, ...]:
        own = named[index]
        major, *minor = (
            abs(a - b) if asked.version else -b
            for a, b in zip_longest(asked.version, own.version or (0,), fillvalue=0)
        )
        shared = len(asked.words & own.words)
        return -shared, major, len(own.words) - shared, *minor, *[0] * (4 - len(minor))

    names = map(_ModelName.parse, models)
    named = {
        index: name
        for index, name in enumerate(names)
        if name.family == asked.family and not _NO_CHAT.search(models[index])
    }
    return min(named, key=distance, default=None)


class _ModelName(NamedTuple):
    """A model's name: its family ("" for none), words and version."""

    family: str
    words: frozenset[str]
    version: tuple[int, ...]

    @classmethod
    def parse(cls, model: str) -> Self:
        name = family_name(model)
        tokens: list[str] = _NAME.findall(name)
        words = [token for token in tokens if not token.isdecimal() and len(token) > 1]
        first = words[0] if words else ""
        own = first if len(first) > 2 else ""
        known = (starts[0] for starts in FAMILIES if name.startswith(starts))
        family = _NICKNAMES.get(first) or next(known, own)
        numbers = dropwhile(lambda token: not token.isdecimal(), tokens)
        version = takewhile(lambda t: t.isdecimal() and len(t) < 4, numbers)
        return cls(
            "" if first in _NO_FAMILY else family,
            frozenset(words),
            tuple(map(int, version)),
        )


def _is_no_chat(model: ModelFacts) -> bool:
    return bool(_NO_CHAT.search(model.id))


def _best(patterns: Iterable[str], models: Sequence[ModelFacts]) -> str:
    """Return the newest model of the first pattern that matches any, or ""."""
    names = [
        (model.id, family_name(model.id.removesuffix(":free"))) for model in models
    ]
    for pattern in patterns:
        found = [(mid, m) for mid, name in names if (m := re.fullmatch(pattern, name))]
        if found:
            return max(found, key=lambda pair: _rank(*pair))[0]
    return ""


def _rank(model: str, match: re.Match[str]) -> tuple[tuple[int, ...], int]:
    """Rank by version, then by the length of the name: a name without a date lasts."""
    version = match[1] if match.re.groups else ""
    return tuple(map(int, re.findall(r"\d+", version or ""))), -len(model)
