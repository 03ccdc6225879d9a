"""What the editor says beside the conversation: memories, open file, selection, patch.

It changes between requests of one conversation. In the system message each change would
make the whole prompt new to the upstream's cache, at several times the price. So each
block stands where it was shown first, before the words of that turn, and stays there in
later requests; a changed one is shown again in the newest turn. Clients do not send it
with their history, so byok remembers what it showed. After a restart everything is
shown once more, at the last question.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import Json, TextPart
from byok.protocols.augment import nodes
from byok.protocols.augment.body import first_text, flag, items, mapping, text
from byok.protocols.augment.frames import fit, frame, room_of
from byok.protocols.augment.history import drop_notices
from byok.protocols.augment.nodes import UserTurn

_ROOM = 8 * 2**20  # characters
_ENTRY = 300
_NO_KEY = 0
# Parts of the room for guidelines and rules.
_AROUND, _MEMORIES = 4, 2
_GONE = {
    "memories": frame("memories", "(There are none any more.)"),
    "open file": "The user has closed the file.",
}


class ShownContext(BoundedMap[int, dict[str, str]]):
    """The blocks that were shown, by turn and kind; the least recently used go first.

    Several threads may use it: at worst, a block is shown twice.
    """

    def __init__(self, room: int = _ROOM) -> None:
        super().__init__(room, _size)


def _size(key: int, shown: dict[str, str]) -> int:
    return _ENTRY + sum(map(len, shown.values()))


def add_editor_context(
    turns: Sequence[UserTurn], body: Json, shown: ShownContext, window: int
) -> list[UserTurn]:
    """Return the turns of a conversation, of which the last is new, with the blocks.

    Of a `window` of so many tokens they take a part only; 0 is unknown.
    """
    *past, current = turns
    lasting = _lasting(body, window)
    passing = _passing(current, body, window)
    keys = _keys(turns, first_text(body, "conversation_id"))
    known = [shown.get(key) for key in keys[:-1]]
    last: dict[str, str] = {}
    for found in known:
        if found:
            last |= found
    if not any(found is not None for found in known):
        place = _last_question(turns)
        added: dict[int, dict[str, str]] = {place: {**lasting, **passing}}
        if place < len(past):  # the selection is no more that of the question
            added[place] = lasting
    else:
        added = {n: found for n, found in enumerate(known) if found}
        added[len(past)] = {**_changes(lasting, last), **passing}
    if keys[0] != _NO_KEY:
        for place in {*added, len(past)}:
            if place == len(past) or not known[place]:
                shown[keys[place]] = added.get(place, {})
    told = [*turns]
    for place, blocks in added.items():
        before = [TextPart(block) for block in blocks.values()]
        content = (*before, *turns[place].content)
        told[place] = replace(turns[place], content=content)
    return told


def _changes(lasting: dict[str, str], last: dict[str, str]) -> dict[str, str]:
    """Return the blocks that differ from what was shown last, and what is gone."""
    changed = {kind: b for kind, b in lasting.items() if last.get(kind) != b}
    for kind, gone in _GONE.items():
        if kind not in lasting and last.get(kind, gone) != gone:
            changed[kind] = gone
    return changed


def _last_question(turns: Sequence[UserTurn]) -> int:
    """Return the place of the newest turn with words; else that of the newest one."""
    newest = len(turns) - 1
    return next((n for n in range(newest, -1, -1) if turns[n].asks), newest)


def _keys(turns: Sequence[UserTurn], conversation: str) -> list[int]:
    """Return a key for each turn: what the user said until then, in this process.

    A turn of results is known by the ids of their calls. A conversation without an id
    has no keys: two of them may begin with the same words.
    """
    if not conversation:
        return [_NO_KEY] * len(turns)
    keys: list[int] = []
    key = hash(conversation)
    for turn in turns:
        key = hash((key, turn.words, *[result.call_id for result in turn.results]))
        keys.append(key)
    return keys


def _lasting(body: Json, window: int) -> dict[str, str]:
    """Return the blocks that hold until they change, by kind."""
    memories, _ = read_memories(body, window)
    found = {"memories": memories, "open file": _open_file(body)}
    return {kind: block for kind, block in found.items() if block}


def _passing(turn: UserTurn, body: Json, window: int) -> dict[str, str]:
    """Return the blocks that belong to one question, by kind."""
    if turn.results or not turn.asks or turn.summary is not None:
        return {}
    if flag(body, "disable_selected_code_details"):
        return {}
    found = {
        "selection": nodes.selection(body, room_of(window) // _AROUND),
        "patch": nodes.diff(text(body, "diff")),
    }
    return {kind: block for kind, block in found.items() if block}


def read_memories(body: Json, window: int) -> tuple[str, str]:
    """Return the memories in their frame, and for the log what of them does not fit."""
    room = room_of(window) // _MEMORIES
    return fit("memories", _memories_text(body), room, "memories have")


def _memories_text(body: Json) -> str:
    remembered = text(body, "agent_memories")
    if not remembered:
        if not (info := mapping(body, "memories_info")):
            return ""
        names = ("agent_memories", "memories", "text", "content")
        remembered = first_text(info, *names) or "\n".join(
            item if isinstance(item, str) else first_text(item, "text", "content")
            for item in items(info, "items")
            if isinstance(item, (str, dict))
        )
    return drop_notices(remembered)


def _open_file(body: Json) -> str:
    path, language = text(body, "path"), text(body, "lang")
    if not path and not language:
        return ""
    shown = f" ({language})" if path and language else language
    return f"The user has this file open: {nodes.one_line(path + shown)}"
