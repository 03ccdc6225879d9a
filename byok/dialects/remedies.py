"""Remedies: changes to a request after which a model accepts it, as table rows.

A row recognises the refusals that it helps against, and changes the body of the
request. `upstream/remedies.py` tries each remedy once a request and remembers those
that helped, per model. Rows for any dialect are here and in `parameter_rows.py`; rows
that depend on the shape of a body belong to the dialect.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from byok.chat import Json
from byok.dialects.model_facts import UNKNOWN_MODEL, ModelFacts
from byok.errors import UpstreamRefused

Body: TypeAlias = dict[str, Any]


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
    upstream's other dialects.
    """

    body: Json
    error: UpstreamRefused
    extra: tuple[str, ...] = ()
    known: tuple[Remedy, ...] = ()
    dialects: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The upstream's message, without the status in front."""
        return self.error.message.partition(": ")[2]


def _never(body: Json) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RemedyRow:
    """One kind of change: how to find that it is needed, how to make it.

    Attributes:
        find: returns `what` and `version` of the remedy for a refusal, or None.
        make: returns a changed copy of the body.
        notice: a sentence for the user, with `{what}` for the changed parts, or "". It
            is shown when the remedy is found, and later where `matters` is true.
        matters: tells from the body whether to show the notice again.
        is_for_agents: the notice is shown in agent conversations only.
        teaches: what a remedy that helped tells about the model.
        switches: the body is not changed but encoded again, in the dialect `what`.
    """

    find: Callable[[RefusedRequest], tuple[str, str] | None]
    make: Callable[[Json, Remedy], Body] = lambda body, _: dict(body)
    notice: str = ""
    matters: Callable[[Json], bool] = _never
    is_for_agents: bool = False
    teaches: Callable[[Remedy], ModelFacts] = lambda _: UNKNOWN_MODEL
    switches: bool = False


# The first row that finds a remedy counts.
RemedyTable: TypeAlias = Mapping[str, RemedyRow]


def find_remedy(table: RemedyTable, refused: RefusedRequest) -> Remedy | None:
    """Return the first remedy for a refusal that was not made yet, or None."""
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
    """Return the changed body and the notices for the user.

    Notices of `new` remedies are always included. Remedies that are not in the table
    are ignored.
    """
    new, parts = tuple(new), dict[str, list[str]]()
    for remedy in remedies:
        if (row := table.get(remedy.change)) is None:
            continue
        before, body = body, row.make(body, remedy)
        is_heard = row.notice and (agent or not row.is_for_agents)
        if is_heard and body != before and (remedy in new or row.matters(before)):
            parts.setdefault(row.notice, []).append(remedy.what)
    notices = (n.format(what=", ".join(whats)).strip() for n, whats in parts.items())
    return dict(body), tuple(notices)


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
