"""Changes to a conversation that a model refuses, and when each is made.

They are made on the neutral request, so that they are the same in every dialect.
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
    Found,
    RefusedRequest,
    Remedy,
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
_ODD_PICTURE = "[a picture stood here, in a format that this model does not take]"
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
    """Say of the tools' parameters what they are, without constraints."""
    tools = (
        replace(tool, parameters=without_constraints({**tool.parameters}))
        for tool in chat.tools
    )
    return replace(chat, tools=tuple(tools))


def keep_own_data(chat: ChatRequest, origin: Origin) -> ChatRequest:
    """Leave out the reasoning of other models, and what came with their calls.

    Nobody else may read it, and no other model understands it.
    """

    def is_own(part: Part) -> bool:
        data: ProviderData | None = getattr(part, "provider_data", None)
        return data is None or data.origin == origin

    def keep(part: Part) -> Part | None:
        if is_own(part):
            return part
        return replace(part, provider_data=None) if isinstance(part, ToolCall) else None

    if all(map(is_own, parts_of(chat.messages))):
        return chat
    return _change_parts(chat, keep)


def limit_answer(chat: ChatRequest, facts: ModelFacts) -> ChatRequest:
    """Ask for no longer answer than the model gives."""
    sampling = chat.sampling
    if not facts.max_output or (sampling.max_tokens or 0) <= facts.max_output:
        return chat
    return replace(chat, sampling=replace(sampling, max_tokens=facts.max_output))


def offer_tools(chat: ChatRequest, tools: Sequence[ToolDefinition]) -> ChatRequest:
    """Offer these tools; a demand for another one is left out."""
    choice = chat.tool_choice
    if choice.name and choice.name not in {tool.name for tool in tools}:
        choice = ToolChoice()
    return replace(chat, tools=tuple(tools), tool_choice=choice)


def leave_choice(chat: ChatRequest) -> ChatRequest:
    """Let the model decide whether to call a tool; a named one is offered alone."""
    choice = chat.tool_choice
    if choice.use is not ToolUse.REQUIRED or not chat.tools:
        return chat
    named = tuple(tool for tool in chat.tools if tool.name == choice.name)
    return replace(chat, tools=named or chat.tools, tool_choice=ToolChoice())


def withhold_tools(chat: ChatRequest) -> ChatRequest:
    """Offer no tools where none may be called."""
    if chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return replace(chat, tools=(), tool_choice=ToolChoice())


def ask_for_json(chat: ChatRequest, remedy: Remedy = _JSON) -> ChatRequest:
    """Ask for an answer in JSON in the system message.

    With `what` "schema" only for what a schema says; that the answer is JSON remains a
    parameter.
    """
    wanted = chat.json_answer
    if wanted is None or (remedy.what and wanted.schema is None):
        return chat
    words = _ASK_FOR_JSON
    if wanted.schema is not None:
        words = f"{words} {_BY_SCHEMA}{write_json(wanted.schema).decode()}"
    first, *rest = chat.messages or (Message(Role.SYSTEM, ()),)
    if first.role is not Role.SYSTEM:
        first, rest = Message(Role.SYSTEM, ()), [first, *rest]
    system = Message(Role.SYSTEM, (*first.parts, TextPart(words)))
    left = JsonAnswer() if remedy.what else None
    return replace(chat, messages=(system, *rest), json_answer=left)


def leave_sampling(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the model use a temperature and top_p of its own."""
    return replace(chat, sampling=replace(chat.sampling, temperature=None, top_p=None))


def keep_most_tools(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Offer at most so many tools, in their order; tools in the history come first.

    A tool that was called stays offered, so that the selection is stable from turn to
    turn.
    """
    if len(chat.tools) <= (most := int(remedy.what)):
        return chat
    called = {p.name for m in chat.messages for p in m.parts if isinstance(p, ToolCall)}
    ranked = sorted(chat.tools, key=lambda tool: tool.name not in called)[:most]
    kept = {tool.name for tool in ranked}
    return offer_tools(chat, [tool for tool in chat.tools if tool.name in kept])


def shorten_descriptions(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Truncate the descriptions of tools, not those of their parameters."""
    longest = int(remedy.what)

    def shorten(tool: ToolDefinition) -> ToolDefinition:
        if len(tool.description) <= longest:
            return tool
        short = truncate_middle(tool.description, longest)[:longest]
        return replace(tool, description=short)

    return offer_tools(chat, [*map(shorten, chat.tools)])


def write_calls_as_text(chat: ChatRequest) -> ChatRequest:
    """Move tool calls and results into the user's messages, marked as records.

    In the assistant's messages they would be an example for the model to imitate.
    Reasoning goes, too: what it led to is no longer there, and some APIs check that.
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
                    parts += (_record(part, calls.get(part.call_id)), *part.images)
                case ThinkingPart():
                    pass
                case _:
                    parts.append(part)
        role = Role.USER if message.role is Role.TOOL else message.role
        if parts:
            messages.append(Message(role, tuple(parts)))
    about = Message(Role.SYSTEM, (TextPart(_ABOUT_RECORDS),))
    place = 1 if messages and messages[0].role is Role.SYSTEM else 0
    messages.insert(place, about)
    return replace(chat, messages=join_messages(messages))


def write_picture_as_text(chat: ChatRequest, digest: str, words: str) -> ChatRequest:
    """Put words in the place of one picture wherever it is, known by its digest."""
    return write_pictures_as(
        chat, lambda image: words if digest_of_picture(image.data) == digest else ""
    )


def write_pictures_as(
    chat: ChatRequest, words_for: Callable[[ImagePart], str]
) -> ChatRequest:
    """Put words in the places of pictures, and below results; others stay."""

    def replace_in(message: Message) -> Message:
        parts: tuple[Part, ...] = ()
        for part in message.parts:
            match part:
                case ImagePart() if words := words_for(part):
                    parts = _join_parts(parts, (TextPart(words),))
                case ToolResult(images=images):
                    kept = tuple(image for image in images if not words_for(image))
                    sentences = [*filter(None, map(words_for, images))]
                    texts = filter(None, (part.content, *sentences))
                    content = "\n\n".join(texts) if sentences else part.content
                    parts = (*parts, replace(part, content=content, images=kept))
                case _:
                    parts = _join_parts(parts, (part,))
        return Message(message.role, parts)

    messages = [
        replace_in(message) if any(map(words_for, pictures_of(message))) else message
        for message in chat.messages
    ]
    return replace(chat, messages=tuple(messages))


def write_other_pictures_as_text(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Put words in the places of pictures that are of no media type of a list."""
    taken = remedy.what.split()
    if all(i.media_type in taken for m in chat.messages for i in pictures_of(m)):
        return chat
    return write_pictures_as(
        chat, lambda image: "" if image.media_type in taken else _ODD_PICTURE
    )


def keep_newest_pictures(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Put words in the places of all pictures but the newest ones."""
    shown = [image.data for m in chat.messages for image in pictures_of(m)]
    left, kept = int(remedy.what), set[str]()
    for data in dict.fromkeys(reversed(shown)):
        left -= shown.count(data)
        if left < 0:
            break
        kept.add(data)
    return write_pictures_as(
        chat, lambda image: "" if image.data in kept else _EARLIER_PICTURE
    )


def digest_of_picture(data: str) -> str:
    """Return a digest of a picture in base64."""
    return digest_of(data.encode())


def alternate_roles(chat: ChatRequest) -> ChatRequest:
    """Let the user and the assistant take turns, beginning with the user.

    Pictures of results become messages of the user, and so do system messages that are
    not at the beginning. Where the user speaks directly after a result, as when a tool
    was interrupted, a word of the assistant is put between them.
    """
    messages: list[Message] = []
    for message in join_messages(_system_first(move_images(chat.messages))):
        before = messages[-1].role if messages else Role.SYSTEM
        if message.role is Role.USER and before is Role.TOOL:
            messages.append(Message(Role.ASSISTANT, (TextPart(_GO_ON),)))
        elif message.role is Role.ASSISTANT and before is Role.SYSTEM:
            messages.append(Message(Role.USER, (TextPart(_NO_WORDS),)))
        messages.append(message)
    return replace(chat, messages=tuple(messages))


def end_with_user(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the user ask for the rest of an answer that the assistant has begun."""
    if not chat.messages or chat.messages[-1].role is not Role.ASSISTANT:
        return chat
    return replace(chat, messages=(*chat.messages, _CONTINUE))


def split_parallel_calls(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the assistant call one tool at a time: each result follows its call."""
    messages: list[Message] = []
    waiting: dict[str, Message] = {}  # calls of the latest turn that are not sent yet
    for message in chat.messages:
        results = (p.call_id for p in message.parts if isinstance(p, ToolResult))
        if call := waiting.pop(next(results, ""), None):
            messages.append(call)
        calls = calls_of(message)
        for later in calls[1:]:
            waiting[later.id] = Message(Role.ASSISTANT, (later,))
        kept = tuple(part for part in message.parts if part not in calls[1:])
        messages.append(Message(message.role, kept))
    return replace(chat, messages=tuple(messages))


def put_system_into_question(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Let the user say what system messages say: the first begins their question."""
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
    """Give tools names, and calls ids, that an API takes: the same in every request.

    Returned are also the names that the tools had, by these. Some models number the
    calls of each turn anew, so an id may stand for several ones.
    """
    names, ids, calls = Aliases(spell_tool), Aliases(rule.spell), _calls_of(chat)
    for name in dict.fromkeys(named.name for named in (*chat.tools, *calls)):
        names.alias(name)
    made = [part.id for part in calls if type(part) is ToolCall]
    answered = [part.call_id for part in calls if type(part) is ToolResult]
    for call_id in dict.fromkeys((*made, *answered)):
        ids.alias(call_id)
    is_repeated = rule.is_unique and len({*made}) < len(made)
    if not (names.are_needed or ids.are_needed or is_repeated):
        return chat, names.originals
    count = Counter[str]()

    def alias(call_id: str) -> str:
        so_far = count[call_id] if rule.is_unique else 0
        # No id has this sign.
        return ids.alias(f"{call_id}\0{so_far}" if so_far > 1 else call_id)

    def spell(part: Part) -> Part:
        match part:
            case ToolCall(id=call_id, name=name):
                count[call_id] += 1
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


def _calls_of(chat: ChatRequest) -> list[ToolCall | ToolResult]:
    """Return the calls and results of a conversation, in their order."""
    return [*filter(_is_call, parts_of(chat.messages))]


def _is_call(part: Part) -> TypeGuard[ToolCall | ToolResult]:
    return type(part) is ToolCall or type(part) is ToolResult  # half of isinstance


def _change_parts(
    chat: ChatRequest, change: Callable[[Part], Part | None]
) -> ChatRequest:
    """Return the conversation with changed parts; None is left out."""

    def rewrite(message: Message) -> Message:
        parts = (new for part in message.parts if (new := change(part)) is not None)
        return Message(message.role, tuple(parts))

    return replace(chat, messages=tuple(map(rewrite, chat.messages)))


def drop_beside_calls(
    chat: ChatRequest, kind: type[TextPart] | type[ThinkingPart]
) -> ChatRequest:
    """Leave out the texts that stand beside tool calls, or the reasoning beside both.

    Reasoning stays in a message that has calls but no text.
    """

    def drop(message: Message) -> Message:
        kinds = {type(part) for part in message.parts if _says_something(part)}
        wanted = {ToolCall, TextPart} if kind is ThinkingPart else {ToolCall}
        if not wanted <= kinds:
            return message
        kept = (part for part in message.parts if not isinstance(part, kind))
        return Message(message.role, tuple(kept))

    return replace(chat, messages=tuple(map(drop, chat.messages)))


def join_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Join messages of one role in a row, except results, with a blank line between."""
    joined: list[Message] = []
    for message in messages:
        role = message.role
        if joined and joined[-1].role is role and role is not Role.TOOL:
            before = joined.pop().parts
            message = Message(role, _join_parts(before, message.parts))
        joined.append(message)
    return tuple(joined)


def _system_first(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages; system messages behind others are the user's words."""
    is_first = True
    for message in messages:
        is_first = is_first and message.role is Role.SYSTEM
        is_late = message.role is Role.SYSTEM and not is_first
        yield Message(Role.USER, message.parts) if is_late else message


def _says_something(part: Part) -> bool:
    return not isinstance(part, TextPart) or bool(part.text.strip())


def _record(result: ToolResult, call: ToolCall | None) -> TextPart:
    arguments, text = call.arguments if call else "", result_text(result)
    return TextPart(f"[earlier tool call]\n{result.name} {arguments}\nresult:\n{text}")


def _join_parts(before: tuple[Part, ...], after: tuple[Part, ...]) -> tuple[Part, ...]:
    """Join parts, with a blank line between a text and another one behind it."""
    match before, after:
        case (*first, TextPart(text=one)), (TextPart(text=other), *rest):
            return (*first, TextPart(f"{one}\n\n{other}"), *rest)
        case _:
            return (*before, *after)


# Refusals of tools: which tool is meant, how many are accepted.


_MOST_TOOLS = 128  # if a refusal names no number
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


def _match_tools(
    text: str, tools: Mapping[str, ToolDefinition]
) -> Iterator[ToolDefinition]:
    """Yield the tools that a refusal names, by name, index or path in their schemas.

    `tools` are in the order in which they were sent, by the names that were sent.
    """
    if place := _INDEX.search(text):
        yield from [*tools.values()][int(place[1]) :][:1]
    if at := _PATH.search(text):
        there = [
            tool
            for tool in tools.values()
            if _leads(write_parameters(tool.parameters), at[1])  # as OpenAI gets them
        ]
        yield from there if len(there) == 1 else ()
    for names in _NAME.findall(text):
        yield from (tools[name] for name in names if name in tools)


def _leads(schema: Any, path: str) -> bool:
    """Tell whether a path exists in a schema: Moonshot names only that."""
    for step in path.split("."):
        schema = schema.get(step) if isinstance(schema, dict) else None
    return schema is not None


# Remedies that rewrite the conversation: the same rows in the table of each dialect.
#
# What a schema is refused for may have the name of a parameter, so these rows come
# before those of parameters. They are also made in this order: a model that takes no
# roles but two and no system message gets records of its calls before the roles are put
# in order, and the system message goes into the question last.


_TOO_MANY = "most tools"
PICTURES = "pictures"
_KINDS = "kinds of pictures"
_FORCED, _FORBIDDEN = "forced", "forbidden"
_OWN_SAMPLING = "own sampling"
_CHOICE = compile_late(
    r"tool_?choice|tool_?config|function_?calling_?config|forc\w+ (?:tool|function)"
)
# llama.cpp, vLLM and others write grammars for schemas.
_GRAMMAR = r"\bx?grammar\b|schema conversion failed"
_JSON_FORM = compile_late(
    rf"{_GRAMMAR}|response[ _]?(?:format|mime[ _]?type|(?:json_?)?schema)"
    r"|output_?format|output_config(?:\.format|: )|text\.format"
    r"|(?:request\.|invalid )format\b"
    r"|json_(?:schema|object)|json mode|structured output|the word '?json"
)
# What chat templates of models raise, and other vendors say.
_NO_SYSTEM = (
    r"system role (?:is )?not supported|does ?n[o']t support (?:the )?'?system"
    r"|(?:system|developer) (?:role|messages?|instructions?) (?:is|are) not"
    r" (?:supported|enabled)"
)
_ONE_CALL = (
    r"only supports? single tool.calls?|(?:parallel|multiple) tool calls (?:is|are) not"
)
# vLLM, Moonshot and Groq, Anthropic.
_MOST_PICTURES = compile_late(
    r"(?:at most|up to|maximum of|limit of|more than) (\d+) image"
    r"|too many images.{0,60}> (\d+)"
)
# Anthropic, OpenAI, Cohere, Amazon's Converse and others.
_TOOL_NAME = compile_late(
    r"(?:(?:tools?|functions?|custom|toolspec)(?:\W\d+)?\W{1,3}name"
    r"|name of (?:an? |the )?(?:tool|function))s?\b.*"
    r"(?:pattern|must match|only contain|regular expression|too long|characters)"
)
_SIGNS = compile_late(r"[\[(]([A-Za-z0-9_.:/\\-]{3,40})[\])]")
_LONGEST_NAME = compile_late(
    r"\{\d,(\d{1,3})\}|(?:length|at most|longer than) (\d{1,3})"
)
_NAME_LENGTH, _SHORTEST = 64, 16
_NINE = compile_late(r"(?:alphanumeric|a-z, 0-9).*length (?:of )?9\b")
_ID = r"(?:tool_call_?id|tool_use_id|call_id|\btool_calls?\W+\d+\W+id)\b"
_LONGEST_ID = compile_late(_ID + r".*maximum length (\d{1,3})\b")
_PLAIN_ID = compile_late(_ID + r".*match pattern")
# Without these a model that seems to refuse all tools may take them.
_BESIDE_TOOLS = ("parallel_tool_calls", "tool_choice", "tool_stream")


def _find_most_tools(refused: RefusedRequest) -> Found:
    """Find out how many tools are accepted.

    Of several numbers in the text the largest below those offered counts: if it is
    still too many, the next refusal names a lower one.
    """
    if refused.error.kind is not RefusalKind.TOO_MANY_TOOLS:
        return None
    if not (offered := len(_own_tools(refused))):
        return None
    added = max(0, len(refused.body["tools"]) - offered)  # by the user
    named = (int(number) - added for number in _NUMBER.findall(refused.text))
    most = max((n for n in named if 0 < n < offered), default=_MOST_TOOLS - added)
    return (str(most), "") if most < offered else None


def _find_description_limit(refused: RefusedRequest) -> Found:
    longest = _DESCRIPTION.search(refused.text)
    return (str(int(longest[1])), "") if longest and _own_tools(refused) else None


def _find_tool(refused: RefusedRequest) -> Found:
    if refused.error.kind is not RefusalKind.BAD_SCHEMA:
        return None
    tool = next(_match_tools(refused.text, _own_tools(refused)), None)
    return (tool.name, _version_of(tool)) if tool else None


def _drop_tool(chat: ChatRequest, remedy: Remedy) -> ChatRequest:
    """Leave out one tool, unless its definition has changed."""
    kept = (
        tool
        for tool in chat.tools
        if tool.name != remedy.what or _version_of(tool) != remedy.version
    )
    return offer_tools(chat, tuple(kept))


def _find_no_tools(refused: RefusedRequest) -> Found:
    is_sent = refused.chat.tools and refused.body.get("tools")
    if not is_sent or refused.error.kind is not RefusalKind.NO_TOOLS:
        return None
    if name_parameter(refused, _BESIDE_TOOLS):
        return None
    return (refused.error.hint, "")


def _find_bare_calls(refused: RefusedRequest) -> Found:
    kinds = (RefusalKind.NO_TOOLS, RefusalKind.NEEDS_TOOLS)
    is_bare = not refused.body.get("tools")
    return ("", "") if is_bare and refused.error.kind in kinds else None


def _write_bare_calls(chat: ChatRequest, _: Remedy) -> ChatRequest:
    """Write the calls of the past as text where the model may not call any tool."""
    if chat.tools and chat.tool_choice.use is not ToolUse.NONE:
        return chat
    return write_calls_as_text(chat)


def _find_choice(use: ToolUse) -> Callable[[RefusedRequest], Found]:
    """Return the search for refusals of such a choice of tools."""

    def find(refused: RefusedRequest) -> Found:
        chat = refused.chat
        is_sent = chat.tools and chat.tool_choice.use is use
        return ("", "") if is_sent and _CHOICE.search(refused.text.lower()) else None

    return find


def _find_json(refused: RefusedRequest) -> Found:
    is_sent = refused.chat.json_answer is not None
    return ("", "") if is_sent and _JSON_FORM.search(refused.text.lower()) else None


def _find_pictures(refused: RefusedRequest) -> Found:
    return ("", "") if refused.error.kind is RefusalKind.NO_IMAGES else None


def _find_most_pictures(refused: RefusedRequest) -> Found:
    found = _MOST_PICTURES.search(refused.text.lower())
    most = next(filter(None, found.groups()), "0") if found else "0"
    return (most, "") if int(most) else None


def _find_grammar(refused: RefusedRequest) -> Found:
    is_schema = refused.error.kind is RefusalKind.BAD_SCHEMA
    return _about_grammar(refused) if is_schema and _own_tools(refused) else None


_about_grammar = when(_GRAMMAR)
_find_roles = when(ROLE_ORDER)


def _find_records(refused: RefusedRequest) -> Found:
    """Find out whether no message at all may be a call or a result.

    That is so where the roles alternate as far as they can, and are refused all the
    same, as by templates of models that were not trained to call tools.
    """
    is_in_order = alternate_roles(refused.chat) == refused.chat
    return _find_roles(refused) if is_in_order else None


def _find_ids(refused: RefusedRequest) -> Found:
    """Find out which ids of calls are accepted: how long, and whether of any signs."""
    text = refused.text.lower()
    if _NINE.search(text):
        return ("9", "exact")
    if found := _LONGEST_ID.search(text):
        return (found[1], "plain")
    return ("64", "plain") if _PLAIN_ID.search(text) else None


def _keep(name: str, _: int) -> str:
    return name


def _id_rule(remedy: Remedy) -> IdRule:
    is_exact = remedy.version == "exact"
    return IdRule(int(remedy.what), is_exact=is_exact, is_plain=not is_exact)


def _find_names(refused: RefusedRequest) -> Found:
    """Find out which signs and how many of them an API takes in the name of a tool.

    Of the pattern that a refusal quotes, the signs beside letters and digits count.
    """
    if not _TOOL_NAME.search(refused.text.lower()):
        return None
    quoted = _SIGNS.findall(refused.text)
    signs = re.sub(r"\w-\w", "", " ".join(quoted)) if quoted else "_"
    sign = next((sign for sign in "_-" if sign in signs), "")
    longest = _LONGEST_NAME.search(refused.text.lower())
    most = int(next(filter(None, longest.groups()))) if longest else _NAME_LENGTH
    return (sign, str(min(max(most, _SHORTEST), _NAME_LENGTH)))


def spelling_of(remedy: Remedy) -> Spelling:
    """Return how a remedy for refused names spells them."""
    return NameRule(int(remedy.version), remedy.what).spell


NAMES = "names"
CHAT_ROWS: RemedyTable = {
    NAMES: RemedyRow(
        _find_names, rewrite=lambda chat, r: spell_calls(chat, spelling_of(r))[0]
    ),
    "descriptions": RemedyRow(_find_description_limit, rewrite=shorten_descriptions),
    "simple schemas": RemedyRow(_find_grammar, rewrite=simplify_schemas),
    "tool": RemedyRow(
        _find_tool,
        rewrite=_drop_tool,
        notice="Tools whose parameters this model refuses were left out: {what}.",
        matters=is_first_turn,
    ),
    _TOO_MANY: RemedyRow(
        _find_most_tools,
        rewrite=keep_most_tools,
        notice="This model takes {what} tools at most, so the last ones were left out. "
        "Switch off MCP servers that you do not need.",
        matters=is_first_turn,
        teaches=lambda remedy: ModelFacts("", most_tools=int(remedy.what)),
    ),
    _FORCED: RemedyRow(
        _find_choice(ToolUse.REQUIRED),
        rewrite=lambda chat, _: leave_choice(chat),
        notice="This model cannot be forced to call a tool, so it was free to answer.",
        matters=is_first_turn,
    ),
    _FORBIDDEN: RemedyRow(
        _find_choice(ToolUse.NONE), rewrite=lambda chat, _: withhold_tools(chat)
    ),
    "no tools": RemedyRow(
        _find_no_tools,
        rewrite=lambda chat, _: write_calls_as_text(offer_tools(chat, ())),
        notice="This model was asked without tools, because it refuses them. {what}",
        matters=is_first_turn,
        is_for_agents=True,
        teaches=lambda _: ModelFacts("", tools=False),
    ),
    "calls": RemedyRow(_find_bare_calls, rewrite=_write_bare_calls),
    _OWN_SAMPLING: RemedyRow(
        lambda _: None,  # of refusals that name one of them, rows about parameters
        rewrite=leave_sampling,
        notice="This model takes no temperature and no top_p, so yours were not sent.",
        matters=is_first_turn,
    ),
    "json": RemedyRow(
        _find_json,
        rewrite=ask_for_json,
        notice="This model cannot be held to a form of JSON, so it was asked for it in "
        "words.",
        matters=is_first_turn,
    ),
    PICTURES: RemedyRow(
        _find_pictures,
        rewrite=lambda chat, _: write_pictures_as(chat, lambda _: NO_PICTURE),
        notice="This model does not support images: a placeholder replaces them.",
        matters=shows_picture,
        teaches=lambda _: ModelFacts("", images=False),
    ),
    _KINDS: RemedyRow(
        lambda _: None,  # known of an API
        rewrite=write_other_pictures_as_text,
        notice="This model does not support some of the images: they were left out.",
        matters=shows_picture,
    ),
    "most pictures": RemedyRow(
        _find_most_pictures,
        rewrite=keep_newest_pictures,
        notice="This model takes {what} images at most: words replace the older ones.",
        matters=is_first_turn,
    ),
    "records": RemedyRow(
        _find_records, rewrite=lambda chat, _: write_calls_as_text(chat)
    ),
    "roles": RemedyRow(
        when(rf"{ROLE_ORDER}|{SOME_ORDER}"),
        rewrite=lambda chat, _: alternate_roles(chat),
    ),
    "last role": RemedyRow(when(rf"{LAST_ROLE}|{SOME_ORDER}"), rewrite=end_with_user),
    "one call": RemedyRow(when(_ONE_CALL), rewrite=split_parallel_calls),
    "ids": RemedyRow(
        _find_ids, rewrite=lambda chat, r: spell_calls(chat, _keep, _id_rule(r))[0]
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


def needed(facts: ModelFacts) -> tuple[Remedy, ...]:
    """Return the remedies that a model is known to need before any refusal."""
    most = str(facts.most_tools)
    few_tools = (Remedy(_TOO_MANY, most),) if facts.most_tools else ()
    no_tools = (Remedy("no tools"),) if facts.tools is False else ()
    no_pictures = (Remedy(PICTURES),) if facts.images is False else ()
    own_sampling = (Remedy(_OWN_SAMPLING),) if facts.sampling is False else ()
    return (*few_tools, *no_tools, *no_pictures, *own_sampling)


def _own_tools(refused: RefusedRequest) -> Mapping[str, ToolDefinition]:
    """Return the conversation's tools in their order, by the names that were sent.

    There are none if they were not sent. Tools that the user adds to the body stand
    behind them.
    """
    if not refused.body.get("tools"):
        return {}
    sent = {name: alias for alias, name in refused.tool_names.items()}
    return {sent.get(tool.name, tool.name): tool for tool in refused.chat.tools}


def _version_of(tool: ToolDefinition) -> str:
    raw = write_json([tool.name, tool.description, tool.parameters])
    return digest_of(raw)
