"""A client's messages as a conversation in which every tool call has one result.

Repeated ids of calls are made unique. A result without a call becomes labelled text.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    Json,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
    text_of,
)
from byok.core.conversation_builder import ConversationBuilder
from byok.core.errors import BadRequest
from byok.core.wire.json_body import write_json
from byok.core.wire.json_fields import parse_object
from byok.protocols.v1.fields import (
    feature_refusal,
    mapping,
    objects,
    text,
    wrong_field,
)

BEGINNING = "(The conversation begins with an answer.)"
_INSTRUCTIONS = "[instructions]"
_ORPHAN = "[earlier tool result, call not in this conversation]"
MAX_TOOLS = 2000
_INPUT = "input"
_NO_PARAMETERS = {"type": "object", "properties": {}}


class Turns:
    """A builder of the messages of a conversation, the oldest first."""

    def __init__(self) -> None:
        self._system: list[str] = []
        self._builder = ConversationBuilder(BEGINNING)
        # Unique ids by the client's id: of the newest answer's calls without a result.
        self._ids: dict[str, list[str]] = {}
        self._newest: set[str] = set()  # the client's ids in the newest answer
        self._taken: set[str] = set()  # ids of all calls
        self._numbers: dict[str, int] = {}  # the last number added to a client's id
        self.user_texts: list[str] = []
        self.left_out: list[str] = []  # parts that byok does not pass on

    def add_system(self, text: str) -> None:
        """Add instructions; after the first message they become text of the user.

        Many chat templates accept only one system message, at the beginning.
        """
        if not text.strip():
            return
        if self._builder.is_empty:
            self._system.append(text)
        else:
            self._builder.add_user(
                [TextPart(f"{_INSTRUCTIONS}\n{text}", is_aside=True)]
            )

    def add_message(self, role: str, parts: Sequence[TextPart | ImagePart]) -> None:
        """Add a message of one of OpenAI's roles that has only content.

        Raises:
            BadRequest: the role is unknown.
        """
        match role:
            case "system" | "developer":
                self.add_system(text_of(parts))
            case "user":
                self.add_user(parts)
            case "assistant":
                self.add_answer(part for part in parts if isinstance(part, TextPart))
            case _:
                raise wrong_field("role", f"one that byok knows, not {role[:60]!r}")

    def add_user(self, parts: Iterable[TextPart | ImagePart]) -> None:
        """Add text and images of the user."""
        filled = [p for p in parts if not isinstance(p, TextPart) or p.text]
        self.user_texts += (p.text for p in filled if isinstance(p, TextPart))
        self._newest.clear()
        self._builder.add_user(filled)

    def add_answer(self, parts: Iterable[TextPart | ThinkingPart | ToolCall]) -> None:
        """Add blocks of the model's answer; all blocks up to a result are one turn."""
        blocks: list[Part] = []
        for part in parts:
            if isinstance(part, ToolCall):
                blocks.append(replace(part, id=self._unique_id(part.id)))
            elif not isinstance(part, TextPart) or part.text:
                blocks.append(part)
        self._builder.add_answer(blocks)

    def add_result(self, result: ToolResult) -> None:
        """Add the result of a call; the first one of each call counts.

        Results of calls with one id belong to the calls in their order.
        """
        self._newest.clear()
        ids = self._ids.get(result.call_id)
        call_id = ids.pop(0) if ids and len(ids) > 1 else ids and ids[0]
        renamed = result if call_id is None else replace(result, call_id=call_id)
        if call_id is None or not self._builder.add_result(renamed):
            status = "error" if result.is_error else "ok"
            head = f"{_ORPHAN}\nid: {result.call_id or 'unknown'}\nstatus: {status}"
            record = TextPart(f"{head}\n{result.content}", is_aside=True)
            self._builder.add_user([record, *result.images])

    def messages(self) -> tuple[Message, ...]:
        """Return the messages; the first one after instructions is the user's.

        Raises:
            BadRequest: there are none.
        """
        system = "\n\n".join(self._system)
        messages = self._builder.messages()
        if not messages:
            if not system:
                raise BadRequest("There is nothing to answer.", code="bad_field")
            return (Message(Role.USER, (TextPart(system),)),)
        if system:
            messages.insert(0, Message(Role.SYSTEM, (TextPart(system),)))
        return tuple(messages)

    def request(self, tools: "ToolList") -> ChatRequest:
        """Return the conversation as a request that offers these tools.

        Raises:
            BadRequest: there is nothing to answer.
        """
        *_, newest = ("", *self.user_texts)
        return ChatRequest(
            self.messages(),
            tools=tools.definitions,
            own_words=newest,
            user_texts=tuple(self.user_texts),
            question=newest,
            agent=bool(tools.definitions),
        )

    def _unique_id(self, client_id: str) -> str:
        """Return an id that no earlier call has; some models repeat their ids."""
        unique, number = client_id, self._numbers.get(client_id, 1)
        while unique in self._taken:
            number += 1
            unique = f"{client_id}_{number}"
        self._taken.add(unique)
        self._numbers[client_id] = number
        earlier = self._ids[client_id] if client_id in self._newest else []
        self._ids[client_id] = [*earlier, unique]
        self._newest.add(client_id)
        return unique


class ToolList:
    """The tools of one body; of equal names the first one counts.

    A free-form tool takes one text, perhaps of a grammar. Upstreams get it as a
    function with that text as its only argument, and its calls are converted back.
    """

    def __init__(self) -> None:
        self._tools: dict[str, ToolDefinition] = {}  # by name
        self.freeform: set[str] = set()  # names of free-form tools
        # Namespaces and names by the names that upstreams get.
        self.namespaces: dict[str, tuple[str, str]] = {}
        self.left_out: list[str] = []

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as upstreams get them."""
        return tuple(self._tools.values())

    def add(self, name: str, description: str, parameters: Mapping[str, Any]) -> None:
        """Add a function.

        Raises:
            BadRequest: it has no name, or there are too many.
        """
        if not name:
            raise wrong_field("the name of a tool", "a string")
        if len(self._tools) >= MAX_TOOLS:
            raise feature_refusal(f"More than {MAX_TOOLS} tools are not passed on")
        schema = {**(parameters or _NO_PARAMETERS), "type": "object"}
        self._tools.setdefault(name, ToolDefinition(name, description, schema))

    def add_freeform(self, row: Mapping[str, Any], namespace: str = "") -> None:
        """Add a free-form tool: `{name, description, format}`."""
        form = mapping(row, "format")
        grammar = mapping(form, "grammar") or form
        paragraphs = [text(row, "description")]
        if definition := text(grammar, "definition"):
            kind = text(grammar, "syntax")
            paragraphs.append(
                f"The input is a text of this {kind} grammar:\n{definition}"
            )
        field = {"type": "string", "description": "The whole input, as plain text."}
        schema = {"properties": {_INPUT: field}, "required": [_INPUT]}
        name = self.whole_name(namespace, text(row, "name"))
        self.add(name, "\n\n".join(filter(None, paragraphs)), schema)
        self.freeform.add(name)

    def whole_name(self, namespace: str, name: str) -> str:
        """Return, and record, the name that upstreams get for a tool in a namespace."""
        whole = join_namespace(namespace, name)
        if namespace:
            self.namespaces[whole] = (namespace, name)
        return whole

    def leave_out(self, kind: str) -> None:
        """Record a tool that only the vendor can run, so that it is left out."""
        self.left_out.append(f"the tool {kind[:60]!r}")

    def keep_only(self, names: Iterable[str]) -> None:
        """Drop all tools but those with these names."""
        allowed = set(names)
        self._tools = {n: tool for n, tool in self._tools.items() if n in allowed}

    def choose(self, use: ToolUse, name: str = "") -> ToolChoice:
        """Return the tool choice; without tools it is the default.

        Raises:
            BadRequest: the named tool is not among them.
        """
        if name and name not in self._tools:
            raise feature_refusal("tool_choice names a tool that byok cannot pass on")
        return ToolChoice(use, name) if self._tools else ToolChoice()


def read_choice(
    choice: Any, tools: ToolList, name_of: Callable[[Json], str]
) -> ToolChoice:
    """Read OpenAI's `tool_choice`: a mode, a tool, or the tools that are allowed.

    `name_of` returns the name in an object that names a tool.

    Raises:
        BadRequest: it is none of these, or the tool is not among them.
    """
    if not isinstance(choice, dict):
        return tools.choose(_read_use(choice))
    if text(choice, "type") != "allowed_tools":
        return tools.choose(ToolUse.REQUIRED, name_of(choice))
    allowed = mapping(choice, "allowed_tools") or choice
    tools.keep_only(map(name_of, objects(allowed, "tools")))
    return tools.choose(_read_use(text(allowed, "mode") or None))


def _read_use(mode: Any) -> ToolUse:
    try:
        return ToolUse.AUTO if mode is None else ToolUse(mode)
    except ValueError:
        raise wrong_field("tool_choice", "auto, none, required or a tool") from None


def join_namespace(namespace: str, name: str) -> str:
    """Return one name for a tool in a namespace; upstreams know no namespaces."""
    return f"{namespace}__{name}" if namespace and name else name


def read_freeform(arguments: str) -> str:
    """Return the text in the arguments of a free-form call."""
    value = (parse_object(arguments) or {}).get(_INPUT)
    return value if isinstance(value, str) else arguments


def write_freeform(value: str) -> str:
    """Return the arguments of a free-form call with this text."""
    return write_json({_INPUT: value}).decode()
