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

# Names of models that cannot chat, or not about code.
_NO_CHAT_NAME = re.compile(
    r"embed|rerank|whisper|tts|dall-e|moderation|transcri|image|audio|speech|realtime"
    r"|guard|bge-|davinci|babbage|sora|veo|imagen|ocr|lyria|robotics|compound|orpheus"
    r"|next-edit|zeta-?2|mercury-edit",
    re.IGNORECASE,
)
# Tokens of a name: words, sizes as one word, and each part of a version.
_NAME_TOKEN = re.compile(r"\d+(?:\.\d+)?[bk](?![a-z])|[a-z]+|\d+")
_NICKNAMES = dict.fromkeys(("sonnet", "opus", "haiku"), "claude")
_NO_FAMILY = frozenset(
    ("auto", "best", "chat", "default", "fast", "inherit", "latest", "model", "smart")
)


def patterns_of(vendor: str) -> DefaultModels:
    """Return the patterns of a preset, by its name."""
    preset = PRESETS.get(vendor)
    if preset is None:
        return ANY_MODELS
    models = preset.models or preset_of(preset.vendor).models
    return models or (LOCAL_MODELS if preset.local else HOST_MODELS)


def choose_chat_model(vendor: str, models: Sequence[ModelFacts]) -> str:
    """Return the best of the listed models for chats and agents, "" if there are none.

    If no pattern matches, it is the first model that accepts tools, else the first one
    that chats, else the first one.
    """
    chatting = [m for m in models if m.chats is not False and not _has_no_chat_name(m)]
    usable = [m for m in chatting if m.tools is not False]
    best = _best(patterns_of(vendor).chat, usable)
    fallbacks = (*(m.id for m in (*usable, *chatting, *models)), "")
    return best or fallbacks[0]


def choose_job_model(
    vendor: str, purpose: Purpose, models: Sequence[ModelFacts]
) -> str:
    """Return the best of the listed models for a job, or "" for the chat's model.

    Commit messages and titles are short and do not need the conversation. Summaries and
    prompts to enhance include it: the chat's model has it in its cache, and has a large
    enough window.
    """
    patterns = patterns_of(vendor)
    chatting = [m for m in models if m.chats is not False and not _has_no_chat_name(m)]
    match purpose:
        case Purpose.COMMIT | Purpose.TITLE:
            return _best(patterns.small, chatting)
        case Purpose.COMPLETION:
            best = _best(patterns.completion, chatting)
            has_fim = fim_profile_of(vendor).modes[0] is not FimMode.CHAT
            fim_models = [m.id for m in models if has_fim and template_of(m.id)]
            smallest = min(fim_models, key=_billions, default="")
            return best or smallest or _best(patterns.small, chatting)
        case Purpose.NEXT_EDIT:
            modes = next_edit_codecs(vendor)
            edit_models = [m.id for m in models if format_of(m.id, modes)]
            return min(edit_models, key=_billions, default="")
        case _:
            return ""


def _billions(model: str) -> float:
    """Return the billions of parameters in a model's name, infinity without any."""
    size = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z0-9])", model.lower())
    return float(size[1]) if size else math.inf


def find_closest(wanted: str, models: Sequence[str]) -> int | None:
    """Return the index of the model of the same family whose name is closest, or None.

    A family has models that their vendor names so, as sonnet4.5 and claude-haiku-4. The
    closest has the most words in common, then the nearest version (the newest, if none
    is wanted), then the fewest further words, which often mean a smaller model.
    """
    target = _ModelName.parse(wanted)
    if not target.family:
        return None

    def distance(index: int) -> tuple[float, ...]:
        candidate = candidates[index]
        major, *minor = (
            abs(a - b) if target.version else -b
            for a, b in zip_longest(
                target.version, candidate.version or (0,), fillvalue=0
            )
        )
        shared = len(target.words & candidate.words)
        extra = len(candidate.words) - shared
        return -shared, major, extra, *minor, *[0] * (4 - len(minor))

    names = map(_ModelName.parse, models)
    candidates = {
        index: name
        for index, name in enumerate(names)
        if name.family == target.family and not _NO_CHAT_NAME.search(models[index])
    }
    return min(candidates, key=distance, default=None)


class _ModelName(NamedTuple):
    """A model's name: its family ("" for none), words and version."""

    family: str
    words: frozenset[str]
    version: tuple[int, ...]

    @classmethod
    def parse(cls, model: str) -> Self:
        name = family_name(model)
        tokens: list[str] = _NAME_TOKEN.findall(name)
        words = [token for token in tokens if not token.isdecimal() and len(token) > 1]
        first = words[0] if words else ""
        unknown = first if len(first) > 2 else ""
        known = (starts[0] for starts in FAMILIES if name.startswith(starts))
        family = _NICKNAMES.get(first) or next(known, unknown)
        numbers = dropwhile(lambda token: not token.isdecimal(), tokens)
        version = takewhile(lambda t: t.isdecimal() and len(t) < 4, numbers)
        return cls(
            "" if first in _NO_FAMILY else family,
            frozenset(words),
            tuple(map(int, version)),
        )


def _has_no_chat_name(model: ModelFacts) -> bool:
    return bool(_NO_CHAT_NAME.search(model.id))


def _best(patterns: Iterable[str], models: Sequence[ModelFacts]) -> str:
    """Return the newest model of the first pattern that matches any, or ""."""
    names = [
        (model.id, family_name(model.id.removesuffix(":free"))) for model in models
    ]
    for pattern in patterns:
        matches = [(i, m) for i, name in names if (m := re.fullmatch(pattern, name))]
        if matches:
            return max(matches, key=lambda pair: _rank(*pair))[0]
    return ""


def _rank(model: str, match: re.Match[str]) -> tuple[tuple[int, ...], int]:
    """Rank by version, then shorter names first: those without a date stay valid."""
    version = match[1] if match.re.groups else ""
    return tuple(map(int, re.findall(r"\d+", version or ""))), -len(model)
