"""Tools of a client: definitions, free-form ones, and which of them may be called.

A free-form tool takes one text, perhaps of a grammar. Upstreams get it as a function
with the text as its only argument, and its calls are turned back.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from byok.chat import ToolChoice, ToolDefinition, ToolUse
from byok.clients.fields import feature_refusal, mapping, text, wrong_field
from byok.wire.json_body import parse_json, write_json

MOST_TOOLS = 2000
_INPUT = "input"
_NO_PARAMETERS = {"type": "object", "properties": {}}


class ToolList:
    """Collects the tools of one body; the first of equal names counts."""

    def __init__(self) -> None:
        self._found: dict[str, ToolDefinition] = {}
        self._freeform: set[str] = set()
        self.namespaces: dict[str, tuple[str, str]] = {}  # and names, by whole names
        self.left_out: list[str] = []

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as upstreams get them."""
        return tuple(self._found.values())

    @property
    def freeform(self) -> frozenset[str]:
        """The names of the free-form ones."""
        return frozenset(self._freeform)

    def add(self, name: str, description: str, parameters: Mapping[str, Any]) -> None:
        """Add a function.

        Raises:
            BadRequest: it has no name, or there are too many.
        """
        if not name:
            raise wrong_field("the name of a tool", "a string")
        if len(self._found) >= MOST_TOOLS:
            raise feature_refusal(f"More than {MOST_TOOLS} tools are not passed on")
        schema = {**(parameters or _NO_PARAMETERS), "type": "object"}
        self._found.setdefault(name, ToolDefinition(name, description, schema))

    def add_freeform(self, row: Mapping[str, Any], namespace: str = "") -> None:
        """Add a free-form tool: `{name, description, format}`."""
        form = mapping(row, "format")
        grammar = mapping(form, "grammar") or form
        said = [text(row, "description")]
        if definition := text(grammar, "definition"):
            kind = text(grammar, "syntax")
            said.append(f"The input is a text of this {kind} grammar:\n{definition}")
        about = {"type": "string", "description": "The whole input, as plain text."}
        schema = {"properties": {_INPUT: about}, "required": [_INPUT]}
        name = self.whole_name(namespace, text(row, "name"))
        self.add(name, "\n\n".join(filter(None, said)), schema)
        self._freeform.add(name)

    def whole_name(self, namespace: str, name: str) -> str:
        """Return the name of a tool in a namespace as upstreams get it, and note it."""
        whole = join_namespace(namespace, name)
        if namespace:
            self.namespaces[whole] = (namespace, name)
        return whole

    def leave_out(self, kind: str) -> None:
        """Note a tool that runs at the vendor and nowhere else."""
        self.left_out.append(f"the tool {kind[:60]!r}")

    def keep_only(self, names: Iterable[str]) -> None:
        """Forget the tools that the model may not call."""
        wanted = set(names)
        self._found = {n: tool for n, tool in self._found.items() if n in wanted}

    def choose(self, use: ToolUse, name: str = "") -> ToolChoice:
        """Return the choice; without tools there is none.

        Raises:
            BadRequest: the tool is not among them.
        """
        if name and name not in self._found:
            raise feature_refusal("tool_choice names a tool that byok cannot pass on")
        return ToolChoice(use, name) if self._found else ToolChoice()


def join_namespace(namespace: str, name: str) -> str:
    """Return one name for a tool in a namespace; upstreams know no namespaces."""
    return f"{namespace}__{name}" if namespace and name else name


def read_freeform(arguments: str) -> str:
    """Return the text in the arguments of a free-form call."""
    try:
        parsed = parse_json(arguments.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return arguments
    found = parsed.get(_INPUT) if isinstance(parsed, dict) else None
    return found if isinstance(found, str) else arguments


def write_freeform(given: str) -> str:
    """Return the arguments of a free-form call with this text."""
    return write_json({_INPUT: given}).decode()
