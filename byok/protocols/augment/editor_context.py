"""The editor's context of a conversation: memories, open file, selection, patch.

It changes between the requests of one conversation. In the system message, each change
would invalidate the upstream's prompt cache, at several times the price. So each block
is inserted before the words of the turn in which it first appears, and stays there in
later requests; a changed block is inserted again in the newest turn. Clients do not
send earlier context with their history, so byok remembers the inserted blocks. After a
restart all of it is inserted once more, at the last question.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from byok.core.bounded import BoundedMap
from byok.core.chat import Json, TextPart
from byok.protocols.augment import nodes
from byok.protocols.augment.body import first_text, flag, items, mapping, text
from byok.protocols.augment.frames import fit, frame, guide_space
from byok.protocols.augment.history import drop_notices
from byok.protocols.augment.nodes import UserTurn

_MAX_CHARS = 8 * 2**20  # of all conversations
_ENTRY_CHARS = 300  # the overhead of a turn
_NO_KEY = 0
# The selection's surroundings and the memories get these fractions of the space for
# guidelines and rules: 1/4 and 1/2.
_SURROUNDINGS_PART, _MEMORIES_PART = 4, 2
# Blocks that replace lasting ones which the client no longer sends.
_REMOVAL_BLOCKS = {
    "memories": frame("memories", "(There are none any more.)"),
    "open file": "The user has closed the file.",
}


class ShownContext(BoundedMap[int, dict[str, str]]):
    """The inserted blocks by turn and kind; the least recently used are evicted first.

    Several threads may use it: at worst, a block is inserted twice.
    """

    def __init__(self, room: int = _MAX_CHARS) -> None:
        super().__init__(room, _size)


def _size(key: int, shown: dict[str, str]) -> int:
    return _ENTRY_CHARS + sum(map(len, shown.values()))


def add_editor_context(
    turns: Sequence[UserTurn], body: Json, shown: ShownContext, window: int
) -> list[UserTurn]:
    """Return the turns of a conversation, of which the last is new, with the blocks.

    The blocks use only a part of the `window`, in tokens; 0 means unknown.
    """
    *past, current = turns
    memories, _ = read_memories(body, window)
    blocks_by_kind = {"memories": memories, "open file": _open_file(body)}
    # The blocks that are valid until they change.
    lasting = {kind: block for kind, block in blocks_by_kind.items() if block}
    passing = _passing(current, body, window)
    keys = _keys(turns, first_text(body, "conversation_id"))
    known = [shown.get(key) for key in keys[:-1]]
    last: dict[str, str] = {}  # the newest inserted block of each kind
    for blocks in known:
        if blocks:
            last |= blocks
    if not any(blocks is not None for blocks in known):
        asking = (n for n, turn in reversed([*enumerate(turns)]) if turn.asks)
        index = next(asking, len(past))
        added: dict[int, dict[str, str]] = {index: {**lasting, **passing}}
        if index < len(past):  # the selection belongs to a later turn
            added[index] = lasting
    else:
        added = {n: blocks for n, blocks in enumerate(known) if blocks}
        added[len(past)] = {**_changes(lasting, last), **passing}
    if keys[0] != _NO_KEY:
        for index in {*added, len(past)}:
            if index == len(past) or not known[index]:
                shown[keys[index]] = added.get(index, {})
    extended = [*turns]
    for index, blocks in added.items():
        parts = [TextPart(block) for block in blocks.values()]
        content = (*parts, *turns[index].content)
        extended[index] = replace(turns[index], content=content)
    return extended


def _changes(lasting: dict[str, str], last: dict[str, str]) -> dict[str, str]:
    """Return the blocks that differ from the last inserted ones, and removals."""
    changed = {kind: b for kind, b in lasting.items() if last.get(kind) != b}
    for kind, removal in _REMOVAL_BLOCKS.items():
        if kind not in lasting and last.get(kind, removal) != removal:
            changed[kind] = removal
    return changed


def _keys(turns: Sequence[UserTurn], conversation: str) -> list[int]:
    """Return a key for each turn, valid in this process: a hash of all words so far.

    Turns with results are identified by the ids of the calls. A conversation without an
    id has no keys: two of them may begin with the same words.
    """
    if not conversation:
        return [_NO_KEY] * len(turns)
    keys: list[int] = []
    key = hash(conversation)
    for turn in turns:
        key = hash((key, turn.words, *[result.call_id for result in turn.results]))
        keys.append(key)
    return keys


def _passing(turn: UserTurn, body: Json, window: int) -> dict[str, str]:
    """Return the blocks that belong to one question, by kind."""
    if turn.results or not turn.asks or turn.summary is not None:
        return {}
    if flag(body, "disable_selected_code_details"):
        return {}
    blocks = {
        "selection": nodes.render_selection(
            body, guide_space(window) // _SURROUNDINGS_PART
        ),
        "patch": nodes.render_diff(text(body, "diff")),
    }
    return {kind: block for kind, block in blocks.items() if block}


def read_memories(body: Json, window: int) -> tuple[str, str]:
    """Return the memories in their frame, and a line for the log if they were cut."""
    limit = guide_space(window) // _MEMORIES_PART
    return fit("memories", _memories_text(body), limit, "memories have")


def _memories_text(body: Json) -> str:
    memories = text(body, "agent_memories")
    if not memories:
        if not (info := mapping(body, "memories_info")):
            return ""
        names = ("agent_memories", "memories", "text", "content")
        memories = first_text(info, *names) or "\n".join(
            item if isinstance(item, str) else first_text(item, "text", "content")
            for item in items(info, "items")
            if isinstance(item, (str, dict))
        )
    return drop_notices(memories)


def _open_file(body: Json) -> str:
    path, language = text(body, "path"), text(body, "lang")
    if not path and not language:
        return ""
    suffix = f" ({language})" if path and language else language
    return f"The user has this file open: {nodes.one_line(path + suffix)}"
