"""Read the definitions of the tools that the client offers."""

from collections.abc import Iterator
from typing import Any

from byok.augment.body import mapping, objects, text
from byok.chat import Json, ToolDefinition
from byok.wire.json_body import MAX_DEPTH, parse_json

MAX_TOOLS = 2000


def read_tools(body: Json) -> tuple[ToolDefinition, ...]:
    """Read the definitions; the first of equal names counts, nameless ones do not.

    They are sorted: clients change the order, and a prompt cache would miss. The
    client's own tools come first, as upstreams with a limit get only the first ones.
    """
    found: dict[str, ToolDefinition] = {}
    for tool in _definitions(body):
        found.setdefault(tool.name, tool)
    tools = [*found.values()][:MAX_TOOLS]
    return tuple(
        sorted(tools, key=lambda tool: (bool(tool.mcp_server_name), tool.name))
    )


def _definitions(body: Json) -> Iterator[ToolDefinition]:
    for row in objects(body, "tool_definitions"):
        inner = {**row, **mapping(row, "definition")}
        if name := text(inner, "name"):
            yield ToolDefinition(
                name,
                text(inner, "description"),
                _schema(inner),
                text(inner, "mcp_server_name"),
                text(inner, "mcp_tool_name"),
            )


def _schema(row: Json) -> dict[str, Any]:
    given = mapping(row, "input_schema", "parameters")
    if not given and (raw := text(row, "input_schema_json")):
        try:
            parsed = parse_json(raw.encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            parsed = None
        if isinstance(parsed, dict) and _shallow(parsed):
            given = parsed
    if not given:
        return {"type": "object", "properties": {}}
    return {**given, "properties": mapping(given, "properties"), "type": "object"}


def _shallow(schema: Json) -> bool:
    """Tell whether a schema can be written again (orjson writes 254 levels)."""
    level: list[Any] = [schema]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return True
    return False
