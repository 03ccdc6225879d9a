"""Remedies: changes to a request after which a model accepts it, as table rows.

A row recognises the refusals that it helps against. It rewrites the conversation
before it is encoded (`chat_changes.py`: the same for all dialects), or changes the
encoded body: rows about parameters, and those of a dialect. `upstream/remedies.py`
tries each remedy once a request and remembers those that helped, per model.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct, field

from byok.core.chat import ChatRequest, Json
from byok.core.errors import ContextLengthExceeded, UpstreamRefused
from byok.core.late import compile_late
from byok.dialects.model_facts import EFFORTS, UNKNOWN_MODEL, ModelFacts, nearest_effort
from byok.dialects.presets import OPENAI_CHAT, OPENAI_RESPONSES
from byok.dialects.refusals import class_of_words

Body: TypeAlias = dict[str, Any]
Found: TypeAlias = tuple[str, str] | None  # `what` and `version` of a remedy
_Item = TypeVar("_Item", ChatRequest, Body)
_NO_CHAT = ChatRequest(())


def digest_of(part: bytes) -> str:
    """Return what a remedy knows a part of a conversation by in later requests."""
    return hashlib.blake2b(part, digest_size=8).hexdigest()


class Remedy(Struct, frozen=True):
    """One change to a request that was refused.

    `change` is the key of its row, `what` the part of the request that is changed (a
    parameter, a tool). `version` distinguishes parts of one name, or is a new value.
    """

    change: str
    what: str = ""
    version: str = ""


class RefusedRequest(Struct, frozen=True):
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


def is_first_turn(chat: ChatRequest) -> bool:
    """Tell whether a conversation begins: its user has not read a notice yet."""
    return chat.is_first_turn


class RemedyRow(Struct, frozen=True):
    """One kind of change: how to find that it is needed, how to make it.

    A row that changes nothing `switches`: the request is encoded again, in the dialect
    `what` of the remedy.

    Attributes:
        find: returns `what` and `version` of the remedy for a refusal, or None.
        rewrite: returns the changed conversation.
        make: returns a changed copy of the body. A remedy that would change neither is
            not made.
        notice: a sentence for the user, with `{what}` for the changed parts, or "". It
            is shown when the remedy is found, and later where `matters` is true.
        matters: tells from the conversation whether to show the notice again.
        is_for_agents: the notice is shown in agent conversations only.
        teaches: what a remedy that helped tells about the model.
    """

    find: Callable[[RefusedRequest], Found]
    make: Callable[[Json, Remedy], Body] | None = None
    notice: str = ""
    matters: Callable[[ChatRequest], bool] = lambda _: False
    is_for_agents: bool = False
    teaches: Callable[[Remedy], ModelFacts] = lambda _: UNKNOWN_MODEL
    rewrite: Callable[[ChatRequest, Remedy], ChatRequest] | None = None

    @property
    def switches(self) -> bool:
        """Whether another dialect is the change."""
        return self.make is None and self.rewrite is None


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
    if row.rewrite is not None and row.rewrite(refused.chat, remedy) == refused.chat:
        return False
    return row.make is None or row.make(refused.body, remedy) != refused.body


def when(
    pattern: str, applies: Callable[[Json], object] = lambda body: True
) -> Callable[[RefusedRequest], Found]:
    """Return the search for refusals whose text, in lower case, has a pattern.

    `applies` tells whether a body can be changed, where the change itself does not.
    """
    compiled = compile_late(pattern)

    def find(refused: RefusedRequest) -> Found:
        is_found = compiled.search(refused.text.lower()) and applies(refused.body)
        return ("", "") if is_found else None

    return find


def rewrite_chat(
    table: RemedyTable,
    chat: ChatRequest,
    remedies: Collection[Remedy],
    *,
    new: Iterable[Remedy] = (),
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the conversation to encode, and the notices for the user.

    Remedies are made in the order of the table, whose rows say what must come first;
    those that are not in it are ignored. Notices of `new` ones are always included.
    """
    if not remedies:
        return chat, ()
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

    def find(refused: RefusedRequest) -> Found:
        said = refused.text.lower()
        named = (dialect for words, dialect in names.items() if words in said)
        found = next((name for name in named if name in refused.dialects), None)
        return (found, "") if found else None

    def teach(remedy: Remedy) -> ModelFacts:
        return ModelFacts("", dialect=remedy.what)

    return RemedyRow(find, teaches=teach)


# Remedies for refused parameters at any depth: drop, rename or lower them.
#
# A parameter is named by its path in the body: `temperature`, `options.num_ctx`.


_MISSING = object()
_OUTPUT_CAPS = {
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
    "maxOutputTokens",
}
# Statuses of refusals that name a parameter; OpenRouter uses 404.
_NAMING = frozenset({400, 404, 422})
_LOWER_BOUND = re.compile(
    r"(?:at least|greater than(?: or equal to)?) \d+|\d+ \(inclusive\) to"
)
_EXCLUDED = re.compile(r"\b(\d{1,9}) \(exclusive\)")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,9}(?![\w-]|\.\d)")


def read_parameter(body: Json, path: str) -> Any:
    """Return the value of a parameter, None where it is missing."""
    return _find(body, path, None)


def has_parameter(body: Json, path: str) -> bool:
    """Tell whether the body has a parameter."""
    return _find(body, path, _MISSING) is not _MISSING


def drop_parameter(body: Json, path: str) -> Body:
    """Return a body without a parameter, and without objects that become empty."""
    name, _, rest = (path, "", "") if path in body else path.partition(".")
    if not has_parameter(body, path):
        return dict(body)
    if rest and (inner := drop_parameter(body[name], rest)):
        return {**body, name: inner}
    return {key: value for key, value in body.items() if key != name}


def set_parameter(body: Json, path: str, value: Any) -> Body:
    """Return a body with this value of a parameter."""
    name, _, rest = path.partition(".")
    if not rest:
        return {**body, name: value}
    inner = body.get(name)
    return {
        **body,
        name: set_parameter(inner if isinstance(inner, dict) else {}, rest, value),
    }


def rename_parameter(body: Json, path: str, new: str) -> Body:
    """Return a body with a parameter under another path; its value stays."""
    if not has_parameter(body, path):
        return dict(body)
    parent, _, old = path.rpartition(".")
    if parent or "." in new:
        value = read_parameter(body, path)
        return set_parameter(drop_parameter(body, path), new, value)
    return {new if key == old else key: value for key, value in body.items()}


def drop_row(paths: Iterable[str], *, with_extra: bool = True) -> RemedyRow:
    """Return the row that drops the first of these parameters that a refusal names.

    Put the more specific names first. Fields that the user added are dropped as well.
    """
    paths = tuple(paths)

    def find(refused: RefusedRequest) -> Found:
        extra = refused.extra if with_extra else ()
        named = name_parameter(refused, (*paths, *extra))
        return (named, "") if named else None

    return RemedyRow(find, drop_named)


def drop_named(body: Json, remedy: Remedy) -> Body:
    """Return a body without the parameter that a remedy names."""
    return drop_parameter(body, remedy.what)


def rename_row(names: Mapping[str, str], *, unless: Iterable[str] = ()) -> RemedyRow:
    """Return the row that renames a refused parameter, once.

    `names` maps old to new paths. The row does not help where a refusal also names a
    parameter of `unless`.
    """
    candidates = (*unless, *names)

    def find(refused: RefusedRequest) -> Found:
        named = name_parameter(refused, candidates)
        if named not in names:
            return None
        other = names[named]
        was_renamed = any(
            remedy.what == other and names.get(other) == named
            for remedy in refused.known
        )
        is_sent = has_parameter(refused.body, other)
        return None if was_renamed or is_sent else (named, "")

    def make(body: Json, remedy: Remedy) -> Body:
        return rename_parameter(body, remedy.what, names[remedy.what])

    return RemedyRow(find, make)


def lower_row(paths: Iterable[str]) -> RemedyRow:
    """Return the row that lowers a parameter to the limit that a refusal names."""
    paths = tuple(paths)

    def find(refused: RefusedRequest) -> Found:
        named = name_parameter(refused, paths)
        value = read_parameter(refused.body, named) if named else None
        if type(value) is not int:
            return None
        text = _LOWER_BOUND.sub("", refused.text)
        text = _EXCLUDED.sub(lambda most: str(int(most[1]) - 1), text)
        numbers = map(int, _NUMBER.findall(text))
        most = max((n for n in numbers if 0 < n < value), default=0)
        return (named, str(most)) if most else None

    def teach(remedy: Remedy) -> ModelFacts:
        caps = remedy.what.rpartition(".")[2] in _OUTPUT_CAPS
        return ModelFacts("", max_output=int(remedy.version) if caps else 0)

    return RemedyRow(find, lower_named, teaches=teach)


def name_parameter(refused: RefusedRequest, paths: Iterable[str]) -> str:
    """Return the first of these parameters that was sent and that the refusal names.

    The refusal may name the path, or its last part as a word; "" where it names none.
    Refusals that state the context window also name `max_tokens`: they do not count.
    """
    error = refused.error
    counts = isinstance(error, ContextLengthExceeded) and error.window
    if error.upstream_status not in _NAMING or counts:
        return ""
    text = refused.text.lower()
    # xAI and Google write names in camel case as well.
    words = {word.replace("_", "") for word in re.findall(r"[a-z0-9_]+", text)}
    return next((path for path in paths if _names(text, words, path, refused.body)), "")


def _names(text: str, words: set[str], path: str, body: Json) -> bool:
    *parents, last = path.lower().split(".")
    is_named = last.replace("_", "") in words
    is_named = is_named or (bool(parents) and path.lower() in text)
    return is_named and has_parameter(body, path)


def _find(body: Json, path: str, default: Any) -> Any:
    if path in body:
        return body[path]
    name, _, rest = path.partition(".")
    inner = body.get(name)
    return _find(inner, rest, default) if rest and isinstance(inner, dict) else default


def lower_named(body: Json, remedy: Remedy) -> Body:
    """Return a body in which a parameter is at most the version of a remedy."""
    value = read_parameter(body, remedy.what)
    most = int(remedy.version)
    is_above = type(value) is int and value > most
    return set_parameter(body, remedy.what, most) if is_above else dict(body)


# The remedy for a refused effort: the nearest of the values that a refusal names.


# "Supported values are: 'low', 'medium', and 'high'." (OpenAI, xAI, Groq, SGLang)
_ACCEPTED = re.compile(
    r"(?:supported values are|must be one of|expected one of|allowed values"
    r"|input should be)"
    r"\W+((?:(?!'input').){1,200})"  # what was sent may follow
)


def effort_row(*paths: str) -> RemedyRow:
    """Return the row for an effort that a model does not accept, by its paths."""

    def find(refused: RefusedRequest) -> Found:
        body = refused.body
        path = next((path for path in paths if has_parameter(body, path)), "")
        text, sent = refused.text.lower(), read_parameter(body, path)
        found = _ACCEPTED.search(text)
        if not found or not isinstance(sent, str):
            return None
        words = re.findall(r"[a-z]+", found[1])
        accepted = [word for word in words if word in EFFORTS]
        is_meant = "effort" in text or f"'{sent}'" in text
        return (path, " ".join(accepted)) if is_meant and accepted else None

    return RemedyRow(find, _use_nearest)


def _use_nearest(body: Json, remedy: Remedy) -> Body:
    sent = read_parameter(body, remedy.what)
    if not isinstance(sent, str):
        return dict(body)
    nearest = nearest_effort(sent, remedy.version.split())
    if not nearest:
        return drop_parameter(body, remedy.what)
    return set_parameter(body, remedy.what, nearest)


# Remedies that ask in another dialect: what refusals say about other APIs.


# In refusals of models that OpenAI, Azure and Copilot serve by another API only.
CHAT_REFUSED = {
    "v1/responses": OPENAI_RESPONSES,
    "responses api": OPENAI_RESPONSES,
    "responses endpoint": OPENAI_RESPONSES,
    "not accessible via the /chat/completions": OPENAI_RESPONSES,  # Copilot
    "not a chat model": OPENAI_RESPONSES,
    "chatcompletion operation does not work": OPENAI_RESPONSES,  # Azure
    "v1/messages": "anthropic",
}
RESPONSES_REFUSED = {
    "chat/completions": OPENAI_CHAT,
    "chat completions": OPENAI_CHAT,
    "not accessible via the /responses": OPENAI_CHAT,
    "not supported with the responses api": OPENAI_CHAT,
    "not supported in the responses api": OPENAI_CHAT,
    "v1/messages": "anthropic",
}
_NO_SUCH_PATH = frozenset({404, 405, 501})


def missing_path_row(dialect: str) -> RemedyRow:
    """Return the row for servers without the path: they are asked in another dialect.

    An unknown model is refused with the same status, but the message names it.
    """

    def find(refused: RefusedRequest) -> Found:
        error = refused.error
        if error.upstream_status not in _NO_SUCH_PATH:
            return None
        says_more = class_of_words(error.message) is not None
        is_switch = dialect in refused.dialects and not says_more
        return (dialect, "") if is_switch else None

    return RemedyRow(find)
