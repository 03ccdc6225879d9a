"""Decoding the body of a chat: the conversation, its position, its purpose."""

from msgspec import Struct

from byok.core.chat import ChatRequest, Json, Message, Role, TextPart
from byok.core.routing import Purpose
from byok.protocols.augment.body import (
    first_text,
    flag,
    integer,
    mapping,
    objects,
    text,
)
from byok.protocols.augment.editor_context import add_editor_context, read_memories
from byok.protocols.augment.frames import read_guides
from byok.protocols.augment.history import (
    HistoryItem,
    MessageBuilder,
    RecordedReply,
    render_summary,
)
from byok.protocols.augment.nodes import (
    CARRIERS,
    RequestNode,
    read_turn,
    request_nodes,
    unknown_note,
)
from byok.protocols.augment.reply_job import DecodeState, Defaults
from byok.protocols.augment.system import (
    is_agent,
    mode_prompt,
    persona_prompt,
    system_text,
)
from byok.protocols.augment.tools import read_tools, shorten_descriptions

_MAX_FOLDERS, _MAX_PATH_CHARS = 64, 4096
_ENHANCED_TAG = "augment-enhanced-prompt"  # enhancing jobs ask the model to write it


def decode_chat(
    body: Json,
    defaults: Defaults,
) -> ChatRequest:
    """Return the conversation of a /chat or /chat-stream body.

    It has no messages if there is nothing to answer. Nodes of unknown types are left
    out.
    """
    state = defaults.state
    exchanges = _read_exchanges(body, state)
    turns = [exchange.turn for exchange in exchanges]
    silent = flag(body, "silent")
    flags = mapping(body, "feature_detection_flags")
    tools = () if silent else read_tools(body, state.read_tool)
    prompt = mode_prompt(body, defaults, tools)
    changes = (t.personality for t in reversed(turns) if t.personality is not None)
    persona = persona_prompt(body, defaults, prompt.text, next(changes, None))
    guides = read_guides(body, defaults.fit.window)
    _, memories_note = read_memories(body, defaults.fit.window)
    unknown = unknown_note(*turns)
    notes = [unknown, prompt.note, persona.note, guides.note, memories_note]
    if defaults.compact_tools:
        tools, note = shorten_descriptions(tools)
        notes.append(note)
    user_texts = tuple(turn.words for turn in turns if turn.words)
    messages: tuple[Message, ...] = ()
    if _needs_answer(exchanges):
        system = system_text(
            body,
            defaults,
            prompt.text,
            persona=persona.text,
            guides=guides.frames,
        )
        messages = _build_messages(body, defaults, exchanges, system)
    return ChatRequest(
        messages,
        tools=tools,
        own_words=user_texts[-1] if user_texts else "",
        user_texts=user_texts,
        question=turns[-1].words,
        prompt=prompt.name if messages else "",
        notes=tuple(filter(None, notes)),
        silent=silent,
        whole=silent,
        agent=is_agent(body) and not silent,
        client_parallel_tools=flag(flags, "support_parallel_tool_use"),
        client_tool_use_start=flag(flags, "support_tool_use_start"),
        sampling=defaults.sampling,
        conversation=first_text(body, "conversation_id"),
    )


def model_id(body: Json) -> str:
    """Return the id of the model that the user chose in the client, "" for none."""
    return first_text(body, "model", "model_id", "model_name")


def plain_messages(body: Json, state: DecodeState) -> list[Message]:
    """Return the messages of a chat, without byok's additions.

    They are for choosing a model and for estimates. A turn that only has results has
    the role of a tool.
    """
    messages: list[Message] = []
    for exchange in _read_exchanges(body, state):
        turn = exchange.turn
        role = Role.TOOL if turn.results and not turn.asks else Role.USER
        messages.append(Message(role, (*turn.results, *turn.content)))
        messages.append(Message(Role.ASSISTANT, exchange.reply.blocks))
    return messages[:-1]


def has_parent(body: Json) -> bool:
    """Tell whether an agent began this conversation, as part of another one."""
    parent = first_text(body, "parent_conversation_id")
    return bool(parent) and parent != first_text(body, "conversation_id")


class ConversationPosition(Struct, frozen=True):
    """The position of a request in a conversation; `after` identifies its history.

    Only one answer can follow: of two requests with the same position, the older one is
    obsolete.
    """

    conversation: str
    after: str


def place_of(body: Json) -> ConversationPosition | None:
    """Return the position of a chat; None if the order of requests does not matter.

    Silent jobs are not turns of the conversation. A request without a history has no
    known position: an SDK may ask independent questions in one conversation so.
    """
    conversation = first_text(body, "conversation_id")
    history = objects(body, "chat_history")
    if not conversation or not history or flag(body, "silent"):
        return None
    return ConversationPosition(
        conversation, f"{len(history)} {first_text(history[-1], 'request_id')}"
    )


def open_folders(body: Json) -> list[str]:
    """Return the folders in the newest message of a chat; empty if it names none.

    A client sends them when they change, and repeats old messages in every turn.
    """
    for message in (body, *reversed(objects(body, "chat_history"))):
        for carrier in CARRIERS:
            for node in objects(message, carrier):
                if integer(node, "type") == RequestNode.IDE_STATE:
                    state = mapping(node, "ide_state_node")
                    if roots := _roots(state):
                        return roots
    return []


def _roots(state: Json) -> list[str]:
    folders = objects(state, "workspace_folders")[:_MAX_FOLDERS]
    roots = (first_text(folder, "folder_root", "repository_root") for folder in folders)
    return [root for root in roots if 0 < len(root) <= _MAX_PATH_CHARS]


def purpose_of_chat(body: Json) -> Purpose:
    """Return whether a chat is the user's, a prompt to enhance, or another job.

    Newer clients use silent chats for background jobs.
    """
    if not flag(body, "silent"):
        return Purpose.CHAT
    nodes = [text(mapping(n, "text_node"), "content") for n in request_nodes(body)]
    is_enhancer = any(
        _ENHANCED_TAG in words for words in (text(body, "message"), *nodes)
    )
    return Purpose.ENHANCE if is_enhancer else Purpose.SUMMARY


def _read_exchanges(body: Json, state: DecodeState) -> list[HistoryItem]:
    """Return the exchanges from the latest summary on; the last one has no reply yet.

    A summary replaces the exchanges before it, and is rendered as text.
    """
    exchanges = [*map(state.read_exchange, objects(body, "chat_history"))]
    current = read_turn(body, text(body, "message"))
    if not current.asks and (words := first_text(body, "prompt", "instruction")):
        current = read_turn(body, words)
    exchanges.append(HistoryItem(current, RecordedReply()))
    for index in range(len(exchanges) - 1, -1, -1):
        turn, reply = exchanges[index].turn, exchanges[index].reply
        if turn.summary is not None:
            first = HistoryItem(render_summary(turn), reply)
            return [first, *exchanges[index + 1 :]]
    return exchanges


def _build_messages(
    body: Json,
    defaults: Defaults,
    exchanges: list[HistoryItem],
    system: str,
) -> tuple[Message, ...]:
    history = MessageBuilder()
    turns = [exchange.turn for exchange in exchanges]
    shown, window = defaults.state.shown, defaults.fit.window
    turns = add_editor_context(turns, body, shown, window)
    for number, (turn, exchange) in enumerate(zip(turns, exchanges, strict=True)):
        history.add_exchange(HistoryItem(turn, exchange.reply), number)
    messages = history.messages()
    if messages and system:
        return (Message(Role.SYSTEM, (TextPart(system),)), *messages)
    return messages


def _needs_answer(exchanges: list[HistoryItem]) -> bool:
    """Tell whether there are new words or results, or an unfinished reply."""
    current = exchanges[-1].turn
    if current.asks or current.results:
        return True
    last = next((e.reply for e in reversed(exchanges) if _has_content(e)), None)
    return last is not None and not (last.text.strip() and not last.calls)


def _has_content(exchange: HistoryItem) -> bool:
    """Tell whether an exchange contains anything at all."""
    turn, reply = exchange.turn, exchange.reply
    return bool(turn.asks or turn.results or reply.text.strip() or reply.calls)
