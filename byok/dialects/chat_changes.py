"""Changes to a conversation that a model refuses, and when each is applied.

They change the neutral request, so that they are the same in every dialect.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from msgspec.structs import replace

from byok.core.chat import (
    ChatRequest,
    ImagePart,
    JsonAnswer,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolUse,
    calls_of,
    parts_of,
)
from byok.core.errors import RefusalKind
from byok.core.escapes import truncate_middle
from byok.core.late import compile_late
from byok.core.wire.json_body import write_json
from byok.dialects.model_facts import ModelFacts
from byok.dialects.refusals import LAST_ROLE, ROLE_ORDER, SOME_ORDER
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    RemedyMatch,
    RemedyRow,
    RemedyTable,
    digest_of,
    is_first_turn,
    name_parameter,
    when,
)
from byok.dialects.safe_names import (
    ANY_ID,
    Aliases,
    IdRule,
    NameRule,
    Spelling,
    move_images,
    result_text,
)
from byok.dialects.schemas import without_constraints, write_parameters

NO_PICTURE = "[a picture stood here; this model sees none]"
_UNSUPPORTED_PICTURE = (
    "[a picture stood here, in a format that this model does not take]"
)
_EARLIER_PICTURE = "[an earlier picture stood here]"
_GO_ON = "Understood."
_NO_WORDS = "(no text)"
_CONTINUE = Message(Role.USER, (TextPart("Continue."),))
_ASK_FOR_JSON = (
    "Answer with one JSON object and nothing else: no words around it, no code fence."
)
_BY_SCHEMA = "It must be valid by this JSON Schema:\n"
_JSON = Remedy("json")
# For the system prompt, so that the model does not write such blocks itself.
_ABOUT_RECORDS = (
    "Blocks headed [earlier tool call] are records of the past, "
    "not a format to imitate."
)
# Refusals of tools: how many are accepted, and which tool is refused.
_DEFAULT_MAX_TOOLS = 128  # if a refusal names no number
_NUMBER = compile_late(r"(?<![\w.-])\d{1,6}(?![\w-]|\.\d)")  # no part of a model's name
_INDEX = compile_late(
    r"tools(?:\[\d+\]\.function_declarations)?(?:\[|\.)(\d+)\b"
    r"(?!\]\.function_declarations)"  # Gemini's list of all tools
)
_NAME = compile_late(r"['\"`]([\w-]{1,64})['\"`]|\b(?:tool|function) ([\w-]{1,64})")
_PATH = compile_late(r"[Aa]t path '(properties[^']+)'")
_DESCRIPTION = compile_late(
    r"tools\W\d+\S*\.description\b.*(?:maximum length|at most|<=) (\d+)"
)
# Names of rows of the table below.
NAMES = "names"
_MAX_TOOLS = "most tools"
PICTURES = "pictures"
_OWN_SAMPLING = "own sampling"
# Refusals of other parts of a conversation.
_CHOICE = (
    r"tool_?choice|tool_?config|function_?calling_?config|forc\w+ (?:tool|function)"
)
# llama.cpp, vLLM and others write grammars for schemas.
_GRAMMAR = r"\bx?grammar\b|schema conversion failed"
_JSON_FORM = (
    rf"{_GRAMMAR}|response[ _]?(?:format|mime[ _]?type|(?:json_?)?schema)"
    r"|output_?format|output_config(?:\.format|: )|text\.format"
    r"|(?:request\.|invalid )format\b"
    r"|json_(?:schema|object)|json mode|structured output|the word '?json"
)
# Errors that chat templates of models raise, and those of other vendors.
_NO_SYSTEM = (
    r"system role (?:is )?not supported|does ?n[o']t support (?:the )?'?system"
    r"|(?:system|developer) (?:role|messages?|instructions?) (?:is|are) not"
    r" (?:supported|enabled)"
)
_ONE_CALL = (
    r"only supports? single tool.calls?|(?:parallel|multiple) tool calls (?:is|are) not"
)
# vLLM, Moonshot and Groq, Anthropic.
_PICTURE_LIMIT = compile_late(
    r"(?:at most|up to|maximum of|limit of|more than) (\d+) image"
    r"|too many images.{0,60}> (\d+)"
)
# Anthropic, OpenAI, Cohere, Amazon's Converse and others.
_TOOL_NAME = compile_late(
    r"(?:(?:tools?|functions?|custom|toolspec)(?:\W\d+)?\W{1,3}name"
    r"|name of (?:an? |the )?(?:tool|function))s?\b.*"
    r"(?:pattern|must match|only contain|regular expression|too long|characters)"
)
_CHARACTER_CLASS = compile_late(r"[\[(]([A-Za-z0-9_.:/\\-]{3,40})[\])]")
_NAME_LIMIT = compile_late(r"\{\d,(\d{1,3})\}|(?:length|at most|longer than) (\d{1,3})")
_MAX_NAME_LENGTH, _MIN_NAME_LENGTH = 64, 16  # characters, of tool names
_NINE_CHARACTERS = compile_late(r"(?:alphanumeric|a-z, 0-9).*length (?:of )?9\b")
_ID = r"(?:tool_call_?id|tool_use_id|call_id|\btool_calls?\W+\d+\W+id)\b"
_ID_LIMIT = compile_late(_ID + r".*maximum length (\d{1,3})\b")
_PLAIN_ID = compile_late(_ID + r".*match pattern")
# Without these parameters, a model that seems to refuse all tools may accept them.
_BESIDE_TOOLS = ("parallel_tool_calls", "tool_choice", "tool_stream")


# --- Changes of a conversation ---


def has_calls(chat: ChatRequest) -> bool:
    """Tell whether the history has tool calls or results."""
    return any(map(_is_call, parts_of(chat.messages)))


def pictures_of(message: Message) -> Iterator[ImagePart]:
    """Yield the pictures of a message, also those in results."""
    for part in message.parts:
        if type(part) is ImagePart:
            yield part
        elif type(part) is ToolResult:
            yield from part.images


def shows_picture(chat: ChatRequest) -> bool:
    """Tell whether the newest turn has a picture."""
    for message in reversed(chat.messages):
        if message.role is Role.ASSISTANT:
            break
        if any(True for _ in pictures_of(message)):
            return True
    return False


def simplify_schemas(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Remove the constraints from the schemas of the tools' parameters."""
    tools = (
        replace(tool, parameters=without_constraints({**tool.parameters}))
        for tool in chat.tools
    )
    return replace(chat, tools=tuple(tools))


def drop_foreign_data(chat: ChatRequest, origin: Origin) -> ChatRequest:
    """Drop the reasoning of other models, and the provider data of their calls.

    No other upstream may read them, and no other model understands them.
    """

    def is_own(part: Part) -> bool:
        data: ProviderData | None = getattr(part, "provider_data", None)
        return data is None or data.origin == origin

    def keep_own(part: Part) -> Part | None:
        if is_own(part):
            return part
        return replace(part, provider_data=None) if isinstance(part, ToolCall) else None

    if all(map(is_own, parts_of(chat.messages))):
        return chat
    return _change_parts(chat, keep_own)


def cap_max_tokens(chat: ChatRequest, facts: ModelFacts) -> ChatRequest:
    """Lower the requested length of the answer to the longest that the model gives."""
    sampling = chat.sampling
    if not facts.max_output or (sampling.max_tokens or 0) <= facts.max_output:
        return chat
    return replace(chat, sampling=replace(sampling, max_tokens=facts.max_output))


def offer_tools(chat: ChatRequest, tools: Sequence[ToolDefinition]) -> ChatRequest:
    """Offer these tools only; a choice of another tool is dropped."""
    choice = chat.tool_choice
    if choice.name and choice.name not in {tool.name for tool in tools}:
        choice = ToolChoice()
    return replace(chat, tools=tuple(tools), tool_choice=choice)


def make_call_optional(chat: ChatRequest) -> ChatRequest:
    """Let the model decide whether to call a tool.

    If a certain tool was required, it is the only one offered.
    """
    choice = chat.tool_choice
    if choice.use is not ToolUse.REQUIRED or not chat.tools:
        return chat
    required = tuple(tool for tool in chat.tools if tool.name == choice.name)
    return replace(chat, tools=required or chat.tools, tool_choice=ToolChoice())


def drop_forbidden_tools(chat: ChatRequest) -> ChatRequest:
    """Offer no tools if the request forbids calling any."""
    if chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return replace(chat, tools=(), tool_choice=ToolChoice())


def ask_for_json(chat: ChatRequest, remedy: Remedy = _JSON) -> ChatRequest:
    """Ask for an answer in JSON in the system message, instead of by a parameter.

    If the remedy's `what` is "schema", this replaces the schema only: a parameter still
    requires that the answer is JSON.
    """
    requested = chat.json_answer
    if requested is None or (remedy.what and requested.schema is None):
        return chat
    words = _ASK_FOR_JSON
    if requested.schema is not None:
        words = f"{words} {_BY_SCHEMA}{write_json(requested.schema).decode()}"
    first, *others = chat.messages or (Message(Role.SYSTEM, ()),)
    if first.role is not Role.SYSTEM:
        first, others = Message(Role.SYSTEM, ()), [first, *others]
    system = Message(Role.SYSTEM, (*first.parts, TextPart(words)))
    parameter = JsonAnswer() if remedy.what else None
    return replace(chat, messages=(system, *others), json_answer=parameter)


def drop_sampling(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the model use its default temperature and top_p."""
    return replace(chat, sampling=replace(chat.sampling, temperature=None, top_p=None))


def limit_tools(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Offer at most as many tools as the remedy's `what` says, in their order.

    Tools that were called come first and stay offered, so that the selection is stable
    from turn to turn.
    """
    if len(chat.tools) <= (limit := int(remedy.what)):
        return chat
    called = {p.name for m in chat.messages for p in m.parts if isinstance(p, ToolCall)}
    ranked = sorted(chat.tools, key=lambda tool: tool.name not in called)
    names = {tool.name for tool in ranked[:limit]}
    return offer_tools(chat, [tool for tool in chat.tools if tool.name in names])


def shorten_descriptions(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Truncate the descriptions of tools, not those of their parameters."""
    limit = int(remedy.what)  # characters

    def shorten(tool: ToolDefinition) -> ToolDefinition:
        if len(tool.description) <= limit:
            return tool
        short = truncate_middle(tool.description, limit)[:limit]
        return replace(tool, description=short)

    return offer_tools(chat, [*map(shorten, chat.tools)])


def write_calls_as_text(chat: ChatRequest) -> ChatRequest:
    """Move tool calls and results into the user's messages, marked as records.

    In the assistant's messages they would be an example for the model to imitate.
    Reasoning is dropped, too: some APIs refuse it without the call that followed it.
    """
    if not has_calls(chat):
        return chat
    calls: dict[str, ToolCall] = {}
    messages: list[Message] = []
    for message in chat.messages:
        parts: list[Part] = []
        for part in message.parts:
            match part:
                case ToolCall():
                    calls[part.id] = part
                case ToolResult():
                    call, text = calls.get(part.call_id), result_text(part)
                    head = f"{part.name} {call.arguments if call else ''}"
                    record = f"[earlier tool call]\n{head}\nresult:\n{text}"
                    parts += (TextPart(record), *part.images)
                case ThinkingPart():
                    pass
                case _:
                    parts.append(part)
        role = Role.USER if message.role is Role.TOOL else message.role
        if parts:
            messages.append(Message(role, tuple(parts)))
    about = Message(Role.SYSTEM, (TextPart(_ABOUT_RECORDS),))
    index = 1 if messages and messages[0].role is Role.SYSTEM else 0
    messages.insert(index, about)
    return replace(chat, messages=join_messages(messages))


def write_pictures_as(
    chat: ChatRequest, words_for: Callable[[ImagePart], str]
) -> ChatRequest:
    """Replace pictures by words; those without words, `""`, stay.

    The words for the pictures of a tool's result are appended to its text.
    """

    def replace_in(message: Message) -> Message:
        parts: tuple[Part, ...] = ()
        for part in message.parts:
            match part:
                case ImagePart() if words := words_for(part):
                    parts = _join_parts(parts, (TextPart(words),))
                case ToolResult(images=images):
                    others = tuple(image for image in images if not words_for(image))
                    sentences = [*filter(None, map(words_for, images))]
                    texts = filter(None, (part.content, *sentences))
                    content = "\n\n".join(texts) if sentences else part.content
                    parts = (*parts, replace(part, content=content, images=others))
                case _:
                    parts = _join_parts(parts, (part,))
        return Message(message.role, parts)

    messages = [
        replace_in(message) if any(map(words_for, pictures_of(message))) else message
        for message in chat.messages
    ]
    return replace(chat, messages=tuple(messages))


def write_other_pictures_as_text(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Replace pictures by words unless the remedy's `what` lists their media type."""
    accepted = remedy.what.split()
    if all(i.media_type in accepted for m in chat.messages for i in pictures_of(m)):
        return chat
    return write_pictures_as(
        chat, lambda image: "" if image.media_type in accepted else _UNSUPPORTED_PICTURE
    )


def keep_newest_pictures(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Replace pictures by words, except the newest ones; `what` is their number."""
    pictures = [image.data for m in chat.messages for image in pictures_of(m)]
    remaining, newest = int(remedy.what), set[str]()
    for data in dict.fromkeys(reversed(pictures)):
        remaining -= pictures.count(data)
        if remaining < 0:
            break
        newest.add(data)
    return write_pictures_as(
        chat, lambda image: "" if image.data in newest else _EARLIER_PICTURE
    )


def digest_of_picture(data: str) -> str:
    """Return the digest of a picture, which is given in base64."""
    return digest_of(data.encode())


def alternate_roles(chat: ChatRequest) -> ChatRequest:
    """Make messages of the user and the assistant alternate, beginning with the user.

    Pictures of results become messages of the user, and so do system messages that are
    not at the beginning. Where the user speaks directly after a result, because a tool
    was interrupted, a short message of the assistant is inserted between them.
    """
    messages: list[Message] = []
    for message in join_messages(_late_system_as_user(move_images(chat.messages))):
        previous = messages[-1].role if messages else Role.SYSTEM
        if message.role is Role.USER and previous is Role.TOOL:
            messages.append(Message(Role.ASSISTANT, (TextPart(_GO_ON),)))
        elif message.role is Role.ASSISTANT and previous is Role.SYSTEM:
            messages.append(Message(Role.USER, (TextPart(_NO_WORDS),)))
        messages.append(message)
    return replace(chat, messages=tuple(messages))


def end_with_user(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the user ask the assistant to continue, if the assistant spoke last."""
    if not chat.messages or chat.messages[-1].role is not Role.ASSISTANT:
        return chat
    return replace(chat, messages=(*chat.messages, _CONTINUE))


def split_parallel_calls(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Give each tool call a message of its own, directly before its result."""
    messages: list[Message] = []
    pending: dict[str, Message] = {}  # calls of the latest turn, by id, until a result
    for message in chat.messages:
        results = (p.call_id for p in message.parts if isinstance(p, ToolResult))
        if call := pending.pop(next(results, ""), None):
            messages.append(call)
        calls = calls_of(message)
        for later in calls[1:]:
            pending[later.id] = Message(Role.ASSISTANT, (later,))
        parts = tuple(part for part in message.parts if part not in calls[1:])
        messages.append(Message(message.role, parts))
    return replace(chat, messages=tuple(messages))


def put_system_into_question(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Turn system messages into the user's: the first one begins the question."""
    if all(message.role is not Role.SYSTEM for message in chat.messages):
        return chat
    messages = (
        Message(Role.USER, m.parts) if m.role is Role.SYSTEM else m
        for m in chat.messages
    )
    return replace(chat, messages=join_messages(messages))


def spell_calls(
    chat: ChatRequest, spell_tool: Spelling, rule: IdRule = ANY_ID
) -> tuple[ChatRequest, Mapping[str, str]]:
    """Replace names of tools and ids of calls by ones that an API accepts.

    The replacements are the same in every request. Also returns the original names by
    the replaced ones. Some models number the calls of each turn anew, so one id may
    belong to several calls.
    """
    names, ids = Aliases(spell_tool), Aliases(rule.spell)
    calls = [*filter(_is_call, parts_of(chat.messages))]
    for name in dict.fromkeys(named.name for named in (*chat.tools, *calls)):
        names.alias(name)
    call_ids = [part.id for part in calls if type(part) is ToolCall]
    result_ids = [part.call_id for part in calls if type(part) is ToolResult]
    for call_id in dict.fromkeys((*call_ids, *result_ids)):
        ids.alias(call_id)
    is_repeated = rule.is_unique and len({*call_ids}) < len(call_ids)
    if not (names.are_needed or ids.are_needed or is_repeated):
        return chat, names.originals
    calls_by_id = Counter[str]()

    def alias(call_id: str) -> str:
        number = calls_by_id[call_id] if rule.is_unique else 0
        # No id contains a null character.
        return ids.alias(f"{call_id}\0{number}" if number > 1 else call_id)

    def spell(part: Part) -> Part:
        match part:
            case ToolCall(id=call_id, name=name):
                calls_by_id[call_id] += 1
                return replace(part, id=alias(call_id), name=names.alias(name))
            case ToolResult(call_id=call_id, name=name):
                return replace(part, call_id=alias(call_id), name=names.alias(name))
            case _:
                return part

    chat = _change_parts(chat, spell)
    if names.are_needed:
        tools = (replace(tool, name=names.alias(tool.name)) for tool in chat.tools)
        choice = chat.tool_choice
        if choice.name:
            choice = replace(choice, name=names.alias(choice.name))
        chat = replace(chat, tools=tuple(tools), tool_choice=choice)
    return chat, names.originals


def drop_beside_calls(
    chat: ChatRequest, kind: type[TextPart] | type[ThinkingPart]
) -> ChatRequest:
    """Drop the parts of one kind from messages that have tool calls.

    Reasoning is dropped only from messages that have calls and text.
    """

    def drop(message: Message) -> Message:
        parts = message.parts
        kinds = {
            type(p) for p in parts if not isinstance(p, TextPart) or p.text.strip()
        }
        conflict = {ToolCall, TextPart} if kind is ThinkingPart else {ToolCall}
        if not conflict <= kinds:
            return message
        kept = (part for part in parts if not isinstance(part, kind))
        return Message(message.role, tuple(kept))

    return replace(chat, messages=tuple(map(drop, chat.messages)))


def join_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join consecutive messages of one role, except results, by a blank line."""
    joined: list[Message] = []
    for message in messages:
        role = message.role
        if joined and joined[-1].role is role and role is not Role.TOOL:
            message = Message(role, _join_parts(joined.pop().parts, message.parts))
        joined.append(message)
    return tuple(joined)


def _late_system_as_user(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages; a system message after others becomes one of the user."""
    is_first = True
    for message in messages:
        is_first = is_first and message.role is Role.SYSTEM
        is_late = message.role is Role.SYSTEM and not is_first
        yield Message(Role.USER, message.parts) if is_late else message


def _join_parts(before: tuple[Part, ...], after: tuple[Part, ...]) -> tuple[Part, ...]:
    """Join parts; two texts that meet become one, with a blank line between."""
    match before, after:
        case (*head, TextPart(text=text)), (TextPart(text=next_text), *tail):
            return (*head, TextPart(f"{text}\n\n{next_text}"), *tail)
        case _:
            return (*before, *after)


def _is_call(part: Part) -> TypeGuard[ToolCall | ToolResult]:
    return type(part) is ToolCall or type(part) is ToolResult  # half of isinstance


def _change_parts(
    chat: ChatRequest, change: Callable[[Part], Part | None]
) -> ChatRequest:
    """Return the conversation with changed parts; a part changed to None is dropped."""

    def rewrite(message: Message) -> Message:
        parts = (new for part in message.parts if (new := change(part)) is not None)
        return Message(message.role, tuple(parts))

    return replace(chat, messages=tuple(map(rewrite, chat.messages)))


# --- Which change a refusal asks for ---


def _match_tools(
    text: str, tools: Mapping[str, ToolDefinition]
) -> Iterator[ToolDefinition]:
    """Yield the tools that a refusal names, by name, index or path in their schemas.

    `tools` are in the order in which they were sent, by the names that were sent.
    """
    if index := _INDEX.search(text):
        yield from [*tools.values()][int(index[1]) :][:1]
    if path := _PATH.search(text):
        matches = [
            tool
            for tool in tools.values()
            if _has_path(
                write_parameters(tool.parameters), path[1]
            )  # as sent to OpenAI
        ]
        yield from matches if len(matches) == 1 else ()
    for names in _NAME.findall(text):
        yield from (tools[name] for name in names if name in tools)


def _has_path(schema: Any, path: str) -> bool:
    """Tell whether a path exists in a schema: Moonshot names no tool, only a path."""
    for step in path.split("."):
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema is not None


def _sent_tools(refused: RefusedRequest) -> Mapping[str, ToolDefinition]:
    """Return the conversation's tools in their order, by the names that were sent.

    The result is empty if no tools were sent. Tools that the user adds to the body
    come after these and are not in it.
    """
    if not refused.body.get("tools"):
        return {}
    aliases = {name: alias for alias, name in refused.tool_names.items()}
    return {aliases.get(tool.name, tool.name): tool for tool in refused.chat.tools}


def _digest_of_tool(tool: ToolDefinition) -> str:
    return digest_of(write_json([tool.name, tool.description, tool.parameters]))


def _find_tool_limit(refused: RefusedRequest) -> RemedyMatch:
    """Find out how many tools are accepted.

    Of several numbers in the text, the largest below the number of offered tools
    counts: if it is still too high, the next refusal leads to a lower one.
    """
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    if not (offered := len(_sent_tools(refused))):
        return None
    added = max(0, len(refused.body["tools"]) - offered)  # by the user
    numbers = (int(number) - added for number in _NUMBER.findall(refused.text))
    fallback = _DEFAULT_MAX_TOOLS - added
    limit = max((n for n in numbers if 0 < n < offered), default=fallback)
    return (str(limit), "") if limit < offered else None


def _find_description_limit(refused: RefusedRequest) -> RemedyMatch:
    limit = _DESCRIPTION.search(refused.text)
    return (str(int(limit[1])), "") if limit and _sent_tools(refused) else None


def _find_refused_tool(refused: RefusedRequest) -> RemedyMatch:
    if refused.error.kind is not RefusalKind.BAD_SCHEMA:
        return None
    tool = next(_match_tools(refused.text, _sent_tools(refused)), None)
    return (tool.name, _digest_of_tool(tool)) if tool else None


def _drop_tool(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Leave out one tool, unless its definition has changed since the refusal."""
    accepted = (
        tool
        for tool in chat.tools
        if tool.name != remedy.what or _digest_of_tool(tool) != remedy.version
    )
    return offer_tools(chat, tuple(accepted))


def _find_no_tools(refused: RefusedRequest) -> RemedyMatch:
    is_sent = refused.chat.tools and refused.body.get("tools")
    if not is_sent or refused.error.kind is not RefusalKind.NO_TOOLS:
        return None
    if name_parameter(refused, _BESIDE_TOOLS):
        return None
    return (refused.error.hint, "")


def _write_calls_without_tools(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Write earlier calls as text if the model may not call any tool now."""
    if chat.tools and chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return write_calls_as_text(chat)


def _find_picture_limit(refused: RefusedRequest) -> RemedyMatch:
    match = _PICTURE_LIMIT.search(refused.text.lower())
    limit = next(filter(None, match.groups()), "0") if match else "0"
    return (limit, "") if int(limit) else None


def _find_ids(refused: RefusedRequest) -> RemedyMatch:
    """Find out the maximum length and the characters of accepted call ids."""
    text = refused.text.lower()
    if _NINE_CHARACTERS.search(text):
        return ("9", "exact")
    if limit := _ID_LIMIT.search(text):
        return (limit[1], "plain")
    return ("64", "plain") if _PLAIN_ID.search(text) else None


def _find_names(refused: RefusedRequest) -> RemedyMatch:
    """Find out which separator an API accepts in a tool's name, and its maximum length.

    If a refusal quotes a pattern, the separator is a character of its class.
    """
    if not _TOOL_NAME.search(refused.text.lower()):
        return None
    quoted = _CHARACTER_CLASS.findall(refused.text)
    characters = re.sub(r"\w-\w", "", " ".join(quoted)) if quoted else "_"
    separator = next((sign for sign in "_-" if sign in characters), "")
    match = _NAME_LIMIT.search(refused.text.lower())
    limit = int(next(filter(None, match.groups()))) if match else _MAX_NAME_LENGTH
    return (separator, str(min(max(limit, _MIN_NAME_LENGTH), _MAX_NAME_LENGTH)))


def name_spelling(remedy: Remedy) -> Spelling:
    """Return the spelling of tool names by a remedy for refused ones."""
    return NameRule(int(remedy.version), remedy.what).spell


# --- The table ---


# Remedies that rewrite the conversation: the same rows in the table of each dialect.
# A refused part of a schema may have the name of a parameter, so these rows come before
# those of parameters. They are also applied in this order: for a model that accepts two
# roles only and no system message, calls become records before the roles are put in
# order, and the system message is moved into the question last.
CHAT_ROWS: RemedyTable = {
    NAMES: RemedyRow(
        _find_names, rewrite=lambda chat, r: spell_calls(chat, name_spelling(r))[0]
    ),
    "descriptions": RemedyRow(_find_description_limit, rewrite=shorten_descriptions),
    "simple schemas": RemedyRow(
        when(
            _GRAMMAR,
            lambda r: r.error.kind is RefusalKind.BAD_SCHEMA and _sent_tools(r),
        ),
        rewrite=simplify_schemas,
    ),
    "tool": RemedyRow(
        _find_refused_tool,
        rewrite=_drop_tool,
        notice="Tools whose parameters this model refuses were left out: {what}.",
        repeats_notice=is_first_turn,
    ),
    _MAX_TOOLS: RemedyRow(
        _find_tool_limit,
        rewrite=limit_tools,
        notice="This model takes {what} tools at most, so the last ones were left out. "
        "Switch off MCP servers that you do not need.",
        repeats_notice=is_first_turn,
        teaches=lambda remedy: ModelFacts("", most_tools=int(remedy.what)),
    ),
    "forced": RemedyRow(
        when(_CHOICE, lambda r: r.chat.tools and r.chat.tool_choice.use == "required"),
        rewrite=lambda chat, _: make_call_optional(chat),
        notice="This model cannot be forced to call a tool, so it was free to answer.",
        repeats_notice=is_first_turn,
    ),
    "forbidden": RemedyRow(
        when(_CHOICE, lambda r: r.chat.tools and r.chat.tool_choice.use == "none"),
        rewrite=lambda chat, _: drop_forbidden_tools(chat),
    ),
    "no tools": RemedyRow(
        _find_no_tools,
        rewrite=lambda chat, _: write_calls_as_text(offer_tools(chat, ())),
        notice="This model was asked without tools, because it refuses them. {what}",
        repeats_notice=is_first_turn,
        is_for_agents=True,
        teaches=lambda _: ModelFacts("", tools=False),
    ),
    "calls": RemedyRow(
        when(
            "",
            lambda r: (
                r.error.kind in (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
                and not r.body.get("tools")
            ),
        ),
        rewrite=_write_calls_without_tools,
    ),
    _OWN_SAMPLING: RemedyRow(
        lambda _: None,  # rows about parameters find refusals of either
        rewrite=drop_sampling,
        notice="This model takes no temperature and no top_p, so yours were not sent.",
        repeats_notice=is_first_turn,
    ),
    "json": RemedyRow(
        when(_JSON_FORM, lambda r: r.chat.json_answer is not None),
        rewrite=ask_for_json,
        notice="This model cannot be held to a form of JSON, so it was asked for it in "
        "words.",
        repeats_notice=is_first_turn,
    ),
    PICTURES: RemedyRow(
        when("", lambda r: r.error.kind is RefusalKind.NO_IMAGES),
        rewrite=lambda chat, _: write_pictures_as(chat, lambda _: NO_PICTURE),
        notice="This model does not support images: a placeholder replaces them.",
        repeats_notice=shows_picture,
        teaches=lambda _: ModelFacts("", images=False),
    ),
    "kinds of pictures": RemedyRow(
        lambda _: None,  # presumed by dialects, whose types are known
        rewrite=write_other_pictures_as_text,
        notice="This model does not support some of the images: they were left out.",
        repeats_notice=shows_picture,
    ),
    "most pictures": RemedyRow(
        _find_picture_limit,
        rewrite=keep_newest_pictures,
        notice="This model takes {what} images at most: words replace the older ones.",
        repeats_notice=is_first_turn,
    ),
    # Calls and results are refused as such if the order of roles is refused although
    # they alternate already, as by chat templates of models that were not trained to
    # call tools.
    "records": RemedyRow(
        when(ROLE_ORDER, lambda r: alternate_roles(r.chat) == r.chat),
        rewrite=lambda chat, _: write_calls_as_text(chat),
    ),
    "roles": RemedyRow(
        when(rf"{ROLE_ORDER}|{SOME_ORDER}"),
        rewrite=lambda chat, _: alternate_roles(chat),
    ),
    "last role": RemedyRow(when(rf"{LAST_ROLE}|{SOME_ORDER}"), rewrite=end_with_user),
    "one call": RemedyRow(when(_ONE_CALL), rewrite=split_parallel_calls),
    "ids": RemedyRow(
        _find_ids,
        rewrite=lambda chat, r: spell_calls(
            chat,
            lambda name, _: name,
            IdRule(
                int(r.what),
                is_exact=r.version == "exact",
                is_plain=r.version != "exact",
            ),
        )[0],
    ),
    "reasoning beside text": RemedyRow(
        when("cannot pass both content and thinking"),
        rewrite=lambda chat, _: drop_beside_calls(chat, ThinkingPart),
    ),
    "text beside calls": RemedyRow(
        when("content or tool_calls, but not both"),
        rewrite=lambda chat, _: drop_beside_calls(chat, TextPart),
    ),
    "system": RemedyRow(when(_NO_SYSTEM), rewrite=put_system_into_question),
}


def needed_remedies(facts: ModelFacts) -> tuple[Remedy, ...]:
    """Return the remedies that the facts about a model call for."""
    limit = str(facts.most_tools)
    few_tools = (Remedy(_MAX_TOOLS, limit),) if facts.most_tools else ()
    no_tools = (Remedy("no tools"),) if facts.tools is False else ()
    no_pictures = (Remedy(PICTURES),) if facts.images is False else ()
    own_sampling = (Remedy(_OWN_SAMPLING),) if facts.sampling is False else ()
    return (*few_tools, *no_tools, *no_pictures, *own_sampling)
