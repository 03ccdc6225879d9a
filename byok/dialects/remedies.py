"""Remedies: changes to a request after which a model accepts it, as table rows.

A row recognises the refusals that it helps against. It rewrites the conversation
before it is encoded (`chat_rows.py`: the same for all dialects), or changes the encoded
body (`parameter_rows.py`, and rows of a dialect). `upstream/remedies.py` tries each
remedy once a request and remembers those that helped, per model.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from byok.chat import ChatRequest, Json
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts
from byok.errors import UpstreamRefused

Body: TypeAlias = dict[str, Any]
_Item = TypeVar("_Item", ChatRequest, Body)
_NO_CHAT = ChatRequest(())


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change to a request that was refused.

    `change` is the key of its row, `what` the part of the request that is changed (a
    parameter, a tool). `version` distinguishes parts of one name, or is a new value.
    """

    change: str
    what: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request that was refused: its body, the error, and the remedies made so far.

    `extra` are fields that the user added to the body, `dialects` the names of the
    upstream's other dialects. `chat` is the conversation as it was encoded, and
    `tool_names` are the names of its tools by those that were sent.
    """

    body: Json
    error: UpstreamRefused
    extra: tuple[str, ...] = ()
    known: tuple[Remedy, ...] = ()
    dialects: tuple[str, ...] = ()
    chat: ChatRequest = _NO_CHAT
    tool_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The upstream's own words."""
        return self.error.reason


def _never(chat: ChatRequest) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """One kind of change: how to find that it is needed, how to make it.

    Attributes:
        find: returns `what` and `version` of the remedy for a refusal, or None.
        rewrite: returns the changed conversation. A remedy that would not change it is
            not made.
        make: returns a changed copy of the body.
        notice: a sentence for the user, with `{what}` for the changed parts, or "". It
            is shown when the remedy is found, and later where `matters` is true.
        matters: tells from the conversation whether to show the notice again.
        is_for_agents: the notice is shown in agent conversations only.
        teaches: what a remedy that helped tells about the model.
        switches: the request is encoded again, in the dialect `what`.
    """

    find: Callable[[RefusedRequest], tuple[str, str] | None]
    make: Callable[[Json, Remedy], Body] | None = None
    notice: str = ""
    matters: Callable[[ChatRequest], bool] = _never
    is_for_agents: bool = False
    teaches: Callable[[Remedy], ModelFacts] = lambda _: UNKNOWN_MODEL
    switches: bool = False
    rewrite: Callable[[ChatRequest, Remedy], ChatRequest] | None = None


# The first row that finds a remedy counts.
RemedyTable: TypeAlias = Mapping[str, RemedyRow]


def find_remedy(table: RemedyTable, refused: RefusedRequest) -> Remedy | None:
    """Return the first remedy for a refusal that was not made yet, or None."""
    for change, row in table.items():
        if found := row.find(refused):
            remedy = Remedy(change, *found)
            if remedy not in refused.known and _helps(row, refused, remedy):
                return remedy
    return None


def _helps(row: RemedyRow, refused: RefusedRequest, remedy: Remedy) -> bool:
    return row.rewrite is None or row.rewrite(refused.chat, remedy) != refused.chat


def rewrite_chat(
    table: RemedyTable,
    chat: ChatRequest,
    remedies: Iterable[Remedy],
    *,
    new: Iterable[Remedy] = (),
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the conversation to encode, and the notices for the user.

    Remedies are made in the order of the table, whose rows say what must come first;
    those that are not in it are ignored. Notices of `new` ones are always included.
    """
    place = {change: number for number, change in enumerate(table)}
    known = sorted(
        (r for r in remedies if r.change in table), key=lambda r: place[r.change]
    )
    rewrites = ((table[remedy.change].rewrite, remedy) for remedy in known)
    return _apply(table, chat, rewrites, new, chat)


def change_body(
    table: RemedyTable,
    body: Body,
    remedies: Iterable[Remedy],
    *,
    chat: ChatRequest = _NO_CHAT,
    new: Iterable[Remedy] = (),
) -> tuple[Body, tuple[str, ...]]:
    """Return the changed body of a conversation, and notices as `rewrite_chat` does.

    Remedies are made in the order in which they were found: a parameter may be renamed
    first and dropped later.
    """
    changes = ((table[r.change].make, r) for r in remedies if r.change in table)
    return _apply(table, body, changes, new, chat)


def _apply(
    table: RemedyTable,
    item: _Item,
    changes: Iterable[tuple[Callable[[_Item, Remedy], _Item] | None, Remedy]],
    new: Iterable[Remedy],
    chat: ChatRequest,
) -> tuple[_Item, tuple[str, ...]]:
    new, parts = tuple(new), dict[str, list[str]]()
    for change, remedy in changes:
        if change is None:
            continue
        row, before = table[remedy.change], item
        item = change(item, remedy)
        is_heard = row.notice and (chat.agent or not row.is_for_agents)
        if is_heard and item != before and (remedy in new or row.matters(chat)):
            parts.setdefault(row.notice, []).append(remedy.what)
    notices = (n.format(what=", ".join(whats)).strip() for n, whats in parts.items())
    return item, tuple(notices)


def switch_row(names: Mapping[str, str]) -> RemedyRow:
    """Return the row for refusals that refer to another API of the same upstream.

    `names` maps text of a refusal, in lower case, to the dialect of that API. The row
    helps only where the upstream has the dialect.
    """

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        said = refused.text.lower()
        named = (dialect for words, dialect in names.items() if words in said)
        found = next((name for name in named if name in refused.dialects), None)
        return (found, "") if found else None

    def teach(remedy: Remedy) -> ModelFacts:
        return ModelFacts("", dialect=remedy.what)

    return RemedyRow(find, teaches=teach, switches=True)
