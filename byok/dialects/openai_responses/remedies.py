"""Remedies of Responses: how to change a request after each refusal."""

import re

from byok.core.chat import Json
from byok.core.wire.json_body import write_json
from byok.core.wire.json_fields import read_objects
from byok.dialects.chat_changes import CHAT_ROWS
from byok.dialects.presets import OPENAI_CHAT
from byok.dialects.remedies import (
    RESPONSES_REFUSED,
    Body,
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    digest_of,
    drop_named,
    drop_parameter,
    drop_row,
    effort_row,
    lower_row,
    missing_path_row,
    name_parameter,
    switch_row,
    when,
)

# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
    "prompt_cache_retention",
    "prompt_cache_key",
    "reasoning.summary",
    "reasoning.effort",
    "reasoning",
    "include",
)
_CAP = "max_output_tokens"
# Refusals of reasoning items: encrypted for another key, out of order, or unknown.
_REASONING = re.compile(
    r"encrypted[ _]content|required (?:following item|'reasoning' item)"
    r"|of type 'reasoning'|items are not persisted|item with id 'rs_"
)
# Refusals of models that encrypt no reasoning, such as those that do not reason.
_NO_ENCRYPTION = r"encrypted[ _]content is not supported|\binclude\b"
# Parameters that need a verified organisation, by words of the refusal.
_UNVERIFIED = (
    ("reasoning summaries", "reasoning.summary"),
    ("stream this model", "stream"),
)
_PARAMETERS = drop_row((*_DROPPABLE, _CAP))


def _find_reasoning(refused: RefusedRequest) -> RemedyMatch:
    """Find the last reasoning item of the request: all up to it are dropped.

    Reasoning items of other conversations stay.
    """
    if not _REASONING.search(refused.text.lower()):
        return None
    items = read_objects(refused.body, "input")
    reasoning = [item for item in items if item.get("type") == "reasoning"]
    return (_digest(reasoning[-1]), "") if reasoning else None


def _drop_reasoning(body: Json, remedy: Remedy) -> Body:
    items = read_objects(body, "input")
    for index, item in enumerate(items):
        if item.get("type") == "reasoning" and _digest(item) == remedy.what:
            earlier = [i for i in items[:index] if i.get("type") != "reasoning"]
            return {**body, "input": [*earlier, *items[index + 1 :]]}
    return dict(body)


def _digest(item: Json) -> str:
    return digest_of(write_json(item))


def _find_parameter(refused: RefusedRequest) -> RemedyMatch:
    """Find a refused parameter, unless the refusal is about a reasoning item.

    Such refusals mention names of parameters. `store` is never dropped: without it, a
    vendor would store the conversation.
    """
    is_about_item = _REASONING.search(refused.text.lower())
    return None if is_about_item else _PARAMETERS.find(refused)


def _find_instructions(refused: RefusedRequest) -> RemedyMatch:
    """Find out whether a server accepts the system prompt only as an input item."""
    named = name_parameter(refused, ("instructions",))
    return ("", "") if named and read_objects(refused.body, "input") else None


def _find_unverified(refused: RefusedRequest) -> RemedyMatch:
    """Find a parameter that OpenAI allows to verified organisations only."""
    text = refused.text.lower()
    if "must be verified" not in text:
        return None
    return next(((path, "") for words, path in _UNVERIFIED if words in text), None)


def _move_instructions(body: Json, _: Remedy) -> Body:
    """Move the system prompt to the beginning of the input."""
    if "instructions" not in body:
        return dict(body)
    others = {key: value for key, value in body.items() if key != "instructions"}
    system = {"type": "message", "role": "system", "content": body["instructions"]}
    return {**others, "input": [system, *read_objects(body, "input")]}


# The first row that helps counts.
REMEDIES: RemedyTable = {
    "reasoning": RemedyRow(_find_reasoning, _drop_reasoning),
    "include": RemedyRow(
        when(_NO_ENCRYPTION), lambda body, _: drop_parameter(body, "include")
    ),
    "dialect": switch_row(RESPONSES_REFUSED),
    "path": missing_path_row(OPENAI_CHAT),
    "unverified": RemedyRow(_find_unverified, drop_named),
    **CHAT_ROWS,
    "effort": effort_row("reasoning.effort"),
    "lower": lower_row((_CAP,)),
    "parameter": RemedyRow(_find_parameter, _PARAMETERS.make),
    "instructions": RemedyRow(_find_instructions, _move_instructions),
}
