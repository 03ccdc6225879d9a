"""The only tool, `codebase-retrieval`: description, arguments, result."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import mcp_types as types

from byok.errors import ByokError
from byok.platform.file_errors import of_system

_log = logging.getLogger(__name__)
NAME = "codebase-retrieval"
FIELD = "information_request"
LONGEST = 100_000
TOOL = types.Tool(
    name=NAME,
    title="Codebase retrieval",
    description=(
        "Finds the code that matters for a task. Say in natural language what you want "
        "to know or change, with the identifiers, file names or messages you know of. "
        "Write English whatever language the conversation is in, with the words that "
        "code would use. Returns the best excerpts of the workspace as it is on "
        "disk now, with paths and line numbers. Use it before you edit code that you "
        "have not seen, and prefer it to a text search when you do not know the exact "
        "words."
    ),
    input_schema={
        "type": "object",
        "properties": {
            FIELD: {
                "type": "string",
                "description": (
                    "What you are looking for, in English, for example: where are "
                    "tool call arguments repaired, class ToolCallRepair, lenient JSON"
                ),
            }
        },
        "required": [FIELD],
        "additionalProperties": False,
    },
    annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
)


class Asks(Protocol):
    """Answers questions about code: a client of the daemon, or this process."""

    async def retrieve(self, question: str) -> str:
        """Answer a question about code with excerpts of it."""


async def call(
    asks: Asks, name: str, arguments: Mapping[str, Any] | None
) -> types.CallToolResult:
    """Run the tool; errors are returned as results that the agent can read."""
    given = dict(arguments or {})
    if wrong := _wrong(name, given):
        return _result(wrong, is_error=True)
    try:
        return _result(await asks.retrieve(given[FIELD]))
    except ByokError as error:
        _log.warning("%s: %s", error.code, error.log_text)
        return _result(error.sentence, is_error=True)
    except OSError as error:  # such as a folder that cannot be written
        _log.exception("the tool failed")
        return _result(of_system(error).sentence, is_error=True)
    except Exception:
        _log.exception("the tool failed")
        return _result("Internal error in byok; see its stderr.", is_error=True)


def _wrong(name: str, given: Mapping[str, Any]) -> str:
    """Return what is wrong with a call, or ""."""
    if name != NAME:
        return f"Unknown tool {name[:100]!r}; the only one is {NAME}."
    unknown = [key for key in given if key != FIELD]
    if unknown:
        return f"Unknown argument {unknown[0][:100]!r}: the only one is {FIELD}."
    request = given.get(FIELD)
    if not isinstance(request, str) or not request.strip():
        return f"{FIELD} must be a text that describes what to look for."
    if len(request) > LONGEST:
        return f"{FIELD} is longer than {LONGEST:,} characters: ask in a few sentences."
    return ""


def _result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    content = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[content], is_error=is_error)
