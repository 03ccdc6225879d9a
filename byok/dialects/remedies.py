"""Remedies: what to change in a request after a refusal, as rows of a table.

A row knows the refusals that ask for its change, and makes the change in the body of a
request. `upstream/remedies.py` makes each remedy once a request and remembers for each
model those that helped. Rows that any dialect can use are in `parameter_rows.py` and
here; what depends on the shape of a body is the dialect's own.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from byok.chat import Json
from byok.errors import UpstreamRefused

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which a model takes a request that it refused.

    `change` is the key of a row, `what` the part of the request that it is about;
    `version` tells that part from a later one of the same name.
    """

    change: str
    what: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """A request, what the upstream said to it, and what was changed before.

    `extra` are the fields that the user added, `dialects` the names of the other
    dialects that this upstream speaks.
    """

    body: Json
    error: UpstreamRefused
    extra: tuple[str, ...] = ()
    known: tuple[Remedy, ...] = ()
    dialects: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The upstream's words, without the status before them."""
        return self.error.message.partition(": ")[2]


def _never(body: Json) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """A change, and when to make it and to tell the user.

    Attributes:
        find: gives the part of the request that a refusal is about and its version;
            None where this row is no help.
        make: returns the changed body; it leaves the given one as it is.
        notice: one sentence for the user, with `{what}` for the parts; "" says nothing.
            It is told when the remedy is found, and later in turns that it `matters`
            for.
        matters: tells from the body whether the user should hear of it once more.
        is_for_agents: other chats hear nothing of it.
        switches: instead of a change of the body, the request is written anew in the
            dialect that `what` names.
    """

    find: Callable[[RefusedRequest], tuple[str, str] | None]
    make: Callable[[Json, Remedy], Body] = lambda body, _: dict(body)
    notice: str = ""
    matters: Callable[[Json], bool] = _never
    is_for_agents: bool = False
    switches: bool = False


# The first row that helps counts.
RemedyTable: TypeAlias = Mapping[str, RemedyRow]


def find_remedy(table: RemedyTable, refused: RefusedRequest) -> Remedy | None:
    """Return the change that a refusal asks for and that was not made yet."""
    for change, row in table.items():
        if found := row.find(refused):
            remedy = Remedy(change, *found)
            if remedy not in refused.known:
                return remedy
    return None


def apply_remedies(
    table: RemedyTable,
    body: Json,
    remedies: Iterable[Remedy],
    *,
    new: Iterable[Remedy] = (),
    agent: bool = False,
) -> tuple[Body, tuple[str, ...]]:
    """Make changes; return the body, and what the user should be told of them.

    The user hears of `new` ones at any rate. A remedy of another table changes nothing.
    """
    new, told = tuple(new), dict[str, list[str]]()
    for remedy in remedies:
        if (row := table.get(remedy.change)) is None:
            continue
        before, body = body, row.make(body, remedy)
        is_heard = row.notice and (agent or not row.is_for_agents)
        if is_heard and body != before and (remedy in new or row.matters(before)):
            told.setdefault(row.notice, []).append(remedy.what)
    notices = (n.format(what=", ".join(whats)).strip() for n, whats in told.items())
    return dict(body), tuple(notices)


def switch_row(names: Mapping[str, str]) -> RemedyRow:
    """Return the row for refusals that name another API of the same upstream.

    `names` maps what a refusal says of an API, in lower case, to the dialect that
    speaks it. The row helps only where the upstream has that dialect.
    """

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        said = refused.text.lower()
        named = (dialect for words, dialect in names.items() if words in said)
        found = next((name for name in named if name in refused.dialects), None)
        return (found, "") if found else None

    return RemedyRow(find, switches=True)
