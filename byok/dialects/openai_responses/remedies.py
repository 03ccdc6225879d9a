"""Remedies of Responses: what to change in a request after each refusal."""

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
    RemedyRow,
    RemedyTable,
    digest_of,
    drop_parameter,
    drop_row,
    effort_row,
    has_parameter,
    lower_row,
    missing_path_row,
    name_parameter,
    switch_row,
)

# Changes to a body of Responses: without reasoning, or with the prompt as an item.


def read_items(body: Json) -> list[Json]:
    """Return the items of the input; the user may have put a text in their place."""
    return [*read_objects(body, "input")]


def without_reasoning(body: Json, last: int | None = None) -> Body:
    """Remove the reasoning items, those up to the place `last` or all."""
    items = read_items(body)
    last = len(items) if last is None else last
    kept = [
        item
        for place, item in enumerate(items)
        if place > last or item.get("type") != "reasoning"
    ]
    return {**body, "input": kept} if items else dict(body)


def instructions_as_item(body: Json) -> Body:
    """Move the system prompt to the beginning of the input."""
    rest = {key: value for key, value in body.items() if key != "instructions"}
    if len(rest) == len(body):
        return rest
    system = {"type": "message", "role": "system", "content": body["instructions"]}
    return {**rest, "input": [system, *read_items(body)]}


# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
    "prompt_cache_key",
    "reasoning.summary",
    "reasoning.effort",
    "reasoning",
    "include",
)
_CAP = "max_output_tokens"
# Refusals of reasoning items: sealed for another key, out of order, or not known.
_REASONING = re.compile(
    r"encrypted[ _]content|required (?:following item|'reasoning' item)"
    r"|of type 'reasoning'|items are not persisted|item with id 'rs_"
)
_NO_SEALING = re.compile(r"encrypted[ _]content is not supported|\binclude\b")
_UNVERIFIED = (
    ("reasoning summaries", "reasoning.summary"),
    ("stream this model", "stream"),
)
_PARAMETERS = drop_row((*_DROPPABLE, _CAP))


def _find_sealing(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find out whether the model seals no reasoning, as those that do not reason."""
    named = _NO_SEALING.search(refused.text.lower())
    return ("include", "") if named and "include" in refused.body else None


def _find_reasoning(refused: RefusedRequest) -> tuple[str, str] | None:
    """Name the last reasoning item of the request: all up to it are left out.

    Another conversation keeps its own.
    """
    if not _REASONING.search(refused.text.lower()):
        return None
    items = read_items(refused.body)
    sealed = [item for item in items if item.get("type") == "reasoning"]
    return (_digest(sealed[-1]), "") if sealed else None


def _drop_reasoning(body: Json, remedy: Remedy) -> Body:
    for place, item in enumerate(read_items(body)):
        if item.get("type") == "reasoning" and _digest(item) == remedy.what:
            return without_reasoning(body, place)
    return dict(body)


def _digest(item: Json) -> str:
    return digest_of(write_json(item))


def _find_parameter(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find a refused parameter; refusals of reasoning items use their names as words.

    Without `store` a vendor would store the conversation.
    """
    is_other = _REASONING.search(refused.text.lower())
    return None if is_other else _PARAMETERS.find(refused)


def _find_instructions(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find out whether a server takes the system prompt only as an item."""
    named = name_parameter(refused, ("instructions",))
    return ("", "") if named and read_items(refused.body) else None


def _find_unverified(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find what an organisation may not ask for before OpenAI has verified it."""
    text = refused.text.lower()
    if "must be verified" not in text:
        return None
    named = (path for words, path in _UNVERIFIED if words in text)
    path = next(named, "")
    return (path, "") if path and has_parameter(refused.body, path) else None


# The first row that helps counts.
REMEDIES: RemedyTable = {
    "reasoning": RemedyRow(_find_reasoning, _drop_reasoning),
    "include": RemedyRow(
        _find_sealing, lambda body, remedy: drop_parameter(body, remedy.what)
    ),
    "dialect": switch_row(RESPONSES_REFUSED),
    "path": missing_path_row(OPENAI_CHAT),
    "unverified": RemedyRow(
        _find_unverified, lambda body, remedy: drop_parameter(body, remedy.what)
    ),
    **CHAT_ROWS,
    "effort": effort_row("reasoning.effort"),
    "lower": lower_row((_CAP,)),
    "parameter": RemedyRow(_find_parameter, _PARAMETERS.make),
    "instructions": RemedyRow(
        _find_instructions, lambda body, _: instructions_as_item(body)
    ),
}
