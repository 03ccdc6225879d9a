"""What to change in a request that the upstream refused: a table of remedies.

A row knows the refusals that ask for its change, and the change. What was found is
kept for the model by `upstream/remedies.py`, and made at once in later requests.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from byok.chat import Json
from byok.dialects.base import Mended, Remedy
from byok.dialects.openai_chat import changes
from byok.dialects.openai_chat.changes import Body
from byok.dialects.quirks import Quirks
from byok.errors import ContextLengthExceeded, RefusalKind, UpstreamRefused

# Parameters without which the request still means the same. The first that the
# refusal names is dropped; the order puts the more specific words first.
_DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
)
_ABOUT_TOOLS = (("parallel_tool_calls", ""), ("tool_choice", ""))
_CAPS = ("max_completion_tokens", "max_tokens")
_NAMING = frozenset({400, 404, 422})  # statuses with a parameter; OpenRouter says 404
_MOST_TOOLS = 128  # where a refusal says no number
_NUMBER = re.compile(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)")  # no part of a model's name
_INDEX = re.compile(
    r"tools(?:\[\d+\]\.function_declarations)?(?:\[|\.)(\d+)\b"
    r"(?!\]\.function_declarations)"  # Gemini's list of all tools
)
_NAME = re.compile(r"['\"`]([\w-]{1,64})['\"`]|\b(?:tool|function) ([\w-]{1,64})")
_PATH = re.compile(r"[Aa]t path '(properties[^']+)'")
_DESCRIPTION = re.compile(
    r"tools\W\d+\S*\.description\b.*(?:maximum length|at most|<=) (\d+)"
)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A request, what the upstream said to it, and what was changed before."""

    body: Json
    error: UpstreamRefused
    extra: tuple[str, ...]
    known: tuple[Remedy, ...]

    @property
    def text(self) -> str:
        """The upstream's words, without the status before them."""
        return str(self.error).partition(": ")[2]

    @property
    def tools(self) -> list[Json]:
        """The functions that are offered; tools that the user added may be none."""
        return [] if "tools" in self.extra else changes.tools_of(self.body)


def _begins(body: Json) -> bool:
    """Tell the first turn of a conversation."""
    return all(message["role"] != "assistant" for message in body["messages"])


def _shows(body: Json) -> bool:
    """Tell a turn that brings a picture."""
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        if changes.has_picture(message):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Row:
    """A change, and when to make and to tell it.

    `find` gives the part of the request that a refusal is about and its version, None
    where this row is no help. `notice` is told when that is found, and later in turns
    for which it `matters`; of one for `agents` other chats hear nothing.
    """

    find: Callable[[_Refused], tuple[str, str] | None]
    make: Callable[[Json, Remedy], Body]
    notice: str = ""
    matters: Callable[[Json], bool] = _begins
    agents: bool = False


def _too_many_tools(refused: _Refused) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    offered = len(refused.tools)
    named = map(int, _NUMBER.findall(refused.text))
    # Of several the largest: where it was too large, the next refusal says so.
    most = max((n for n in named if 0 < n < offered), default=_MOST_TOOLS)
    return (str(most), "") if most < offered else None


def _long_description(refused: _Refused) -> tuple[str, str] | None:
    found = _DESCRIPTION.search(refused.text)
    return (found[1], "") if found and refused.tools else None


def _bad_tool(refused: _Refused) -> tuple[str, str] | None:
    if refused.error.kind is not RefusalKind.BAD_SCHEMA:
        return None
    found = next(_tools_in_error(refused.text, refused.tools), None)
    return (found["name"], changes.digest_of(found)) if found else None


def _tools_in_error(text: str, tools: list[Json]) -> Iterator[Json]:
    if place := _INDEX.search(text):
        yield from tools[int(place[1]) :][:1]
    if at := _PATH.search(text):
        there = [tool for tool in tools if _leads(tool["parameters"], at[1])]
        yield from there if len(there) == 1 else ()
    by_name = {tool["name"]: tool for tool in tools}
    for names in _NAME.findall(text):
        yield from (by_name[name] for name in names if name in by_name)


def _leads(schema: Any, path: str) -> bool:
    """Tell whether a path leads anywhere in a schema: Moonshot names nothing else."""
    for step in path.split("."):
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema is not None


def _tools_at_all(refused: _Refused) -> tuple[str, str] | None:
    if _parameter(refused) in _ABOUT_TOOLS:  # without that one it may take tools
        return None
    wanted = refused.error.kind is RefusalKind.NO_TOOLS and refused.body.get("tools")
    return (refused.error.hint, "") if wanted else None


def _old_calls(refused: _Refused) -> tuple[str, str] | None:
    kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
    bare = not refused.body.get("tools") and changes.has_calls(refused.body)
    return ("", "") if bare and refused.error.kind in kinds else None


def _pictures(refused: _Refused) -> tuple[str, str] | None:
    shown = any(map(changes.has_picture, refused.body.get("messages") or ()))
    wanted = shown and refused.error.kind is RefusalKind.NO_IMAGES
    return ("", "") if wanted else None


def _parameter(refused: _Refused) -> tuple[str, str] | None:
    """Find a parameter that the refusal names.

    Of a conversation that is too long, by how much, the cap of the answer is named too.
    """
    error = refused.error
    counts = isinstance(error, ContextLengthExceeded) and error.window
    if error.upstream_status not in _NAMING or counts:
        return None
    words = set(re.findall(r"[a-z_]+", refused.text.lower()))
    candidates = (*_DROPPABLE, *_CAPS, *refused.extra)
    found = (name for name in candidates if name in words and name in refused.body)
    return next(((name, "") for name in found), None)


def _cap(refused: _Refused) -> tuple[str, str] | None:
    """Find a cap whose other name was not tried yet."""
    found = _parameter(refused)
    if not found or found[0] not in _CAPS:
        return None
    other = _other_cap(found[0])
    tried = other in refused.body or Remedy("cap", other) in refused.known
    return None if tried else found


def _other_cap(name: str) -> str:
    return next(cap for cap in _CAPS if cap != name)


def _with_other_cap(body: Json, remedy: Remedy) -> Body:
    other = _other_cap(remedy.what)
    return {other if key == remedy.what else key: body[key] for key in body}


def _without(body: Json, remedy: Remedy) -> Body:
    return {key: value for key, value in body.items() if key != remedy.what}


# The first row that helps counts. What a schema is refused for may have the name of a
# parameter, so tools come first.
_ROWS = {
    "most tools": _Row(
        _too_many_tools,
        lambda body, remedy: changes.fewer_tools(body, int(remedy.what)),
        "This model takes {what} tools at most, so the last ones were left out. Switch "
        "off MCP servers that you do not need.",
    ),
    "descriptions": _Row(
        _long_description,
        lambda body, remedy: changes.short_descriptions(body, int(remedy.what)),
    ),
    "tool": _Row(
        _bad_tool,
        lambda body, remedy: changes.without_tool(body, remedy.what, remedy.version),
        "Tools whose parameters this model refuses were left out: {what}.",
    ),
    "no tools": _Row(
        _tools_at_all,
        lambda body, _: changes.without_tools(body),
        "This model was asked without tools, because it refuses them. {what}",
        agents=True,
    ),
    "calls": _Row(_old_calls, lambda body, _: _old_calls_as_text(body)),
    "pictures": _Row(
        _pictures,
        lambda body, _: changes.pictures_as_text(body),
        "This model sees no pictures: a sentence stands where they were.",
        _shows,
    ),
    "cap": _Row(_cap, _with_other_cap),
    "parameter": _Row(_parameter, _without),
}


def _old_calls_as_text(body: Json) -> Body:
    return dict(body) if body.get("tools") else changes.calls_as_text(body)


def presumed_remedies(quirks: Quirks) -> tuple[Remedy, ...]:
    """Return what is known of a vendor before any refusal."""
    return (Remedy("most tools", str(quirks.most_tools)),) if quirks.most_tools else ()


def remedy_for(
    body: Json,
    error: UpstreamRefused,
    known: Iterable[Remedy],
    extra: Iterable[str] = (),
) -> Remedy | None:
    """Return the change that a refusal asks for and that was not made yet.

    `extra` are the fields that the user added and that may be left out as well.
    """
    refused = _Refused(body, error, tuple(extra), tuple(known))
    for change, row in _ROWS.items():
        if found := row.find(refused):
            remedy = Remedy(change, *found)
            if remedy not in refused.known:
                return remedy
    return None


def apply_remedies(
    body: Json, remedies: Iterable[Remedy], *, new: bool = False, agent: bool = False
) -> Mended:
    """Make these changes, and say which of them the user should hear of."""
    told: dict[str, list[str]] = {}
    for remedy in remedies:
        row, before = _ROWS[remedy.change], body
        body = row.make(before, remedy)
        heard = row.notice and (agent or not row.agents)
        if heard and body != before and (new or row.matters(before)):
            told.setdefault(row.notice, []).append(remedy.what)
    notices = (n.format(what=", ".join(whats)).strip() for n, whats in told.items())
    return Mended(dict(body), tuple(notices))
