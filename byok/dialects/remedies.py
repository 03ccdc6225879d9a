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
# `what` and `version` of the remedy for a refusal, or None.
RemedyMatch: TypeAlias = tuple[str, str] | None
_Item = TypeVar("_Item", ChatRequest, Body)
_NO_CHAT = ChatRequest(())
_MISSING = object()
# Parameters, by the last part of their path, that limit the length of an answer.
_OUTPUT_CAPS = {
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
    "maxOutputTokens",
}
# Statuses of refusals that name a parameter; OpenRouter uses 404.
_PARAMETER_STATUSES = frozenset({400, 404, 422})
_LOWER_BOUND = re.compile(
    r"(?:at least|greater than(?: or equal to)?) \d+|\d+ \(inclusive\) to"
)
_EXCLUDED = re.compile(r"\b(\d{1,9}) \(exclusive\)")
_NUMBER = re.compile(r"(?<![\w.-])\d{1,9}(?![\w-]|\.\d)")
# "Supported values are: 'low', 'medium', and 'high'." (OpenAI, xAI, Groq, SGLang)
_ACCEPTED = re.compile(
    r"(?:supported values are|must be one of|expected one of|allowed values"
    r"|input should be)"
    r"\W+((?:(?!'input').){1,200})"  # the value that was sent may follow
)
# Texts of refusals, in lower case, that refer to another API, and its dialect: about
# models that OpenAI, Azure and Copilot serve by one API only.
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


def digest_of(part: bytes) -> str:
    """Return the digest by which a remedy recognises a part of a conversation."""
    return hashlib.blake2b(part, digest_size=8).hexdigest()


class Remedy(Struct, frozen=True):
    """One change to a request that was refused.

    `change` is the key of its row, `what` the part of the request that is changed (a
    parameter, a tool). `version` distinguishes parts of one name, or is the new value.
    """

    change: str
    what: str = ""
    version: str = ""


class RefusedRequest(Struct, frozen=True):
    """A request that was refused: its body, the error, and the remedies applied so far.

    `extra` are the fields that the user added to the body, `dialects` the names of the
    upstream's other dialects. `chat` is the conversation as it was encoded, and
    `tool_names` maps the names of tools that were sent to the user's names.
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
        """The upstream's message, unchanged."""
        return self.error.reason


def is_first_turn(chat: ChatRequest) -> bool:
    """Tell whether a conversation begins: its user has read no notice yet."""
    return chat.is_first_turn


class RemedyRow(Struct, frozen=True):
    """One kind of change: how to recognise that it is needed, and how to apply it.

    A row with neither `rewrite` nor `make` switches the dialect: the request is encoded
    again, in the dialect that is the remedy's `what`.

    Attributes:
        find: returns `what` and `version` of the remedy for a refusal, or None.
        rewrite: returns the changed conversation.
        make: returns a changed copy of the body. A remedy that would change neither is
            not applied.
        notice: a sentence for the user, with `{what}` for the changed parts, or "". It
            is shown when the remedy is found, and later where `repeats_notice` says so.
        repeats_notice: tells from the conversation whether to show the notice again.
        is_for_agents: the notice is shown in agent conversations only.
        teaches: returns the facts about the model that a remedy that helped implies.
    """

    find: Callable[[RefusedRequest], RemedyMatch]
    make: Callable[[Json, Remedy], Body] | None = None
    notice: str = ""
    repeats_notice: Callable[[ChatRequest], bool] = lambda _: False
    is_for_agents: bool = False
    teaches: Callable[[Remedy], ModelFacts] = lambda _: UNKNOWN_MODEL
    rewrite: Callable[[ChatRequest, Remedy], ChatRequest] | None = None

    @property
    def switches(self) -> bool:
        """Whether the row switches to another dialect."""
        return self.make is None and self.rewrite is None


# Rows by the name of their change, in order: the first row that finds a remedy counts.
RemedyTable: TypeAlias = Mapping[str, RemedyRow]


def find_remedy(table: RemedyTable, refused: RefusedRequest) -> Remedy | None:
    """Return the first remedy for a refusal that was not applied yet, or None."""
    for change, row in table.items():
        if match := row.find(refused):
            remedy, chat, body = Remedy(change, *match), refused.chat, refused.body
            is_useless = (row.rewrite and row.rewrite(chat, remedy) == chat) or (
                row.make and row.make(body, remedy) == body
            )
            if remedy not in refused.known and not is_useless:
                return remedy
    return None


def when(
    pattern: str, applies: Callable[[RefusedRequest], object] = lambda _: True
) -> Callable[[RefusedRequest], RemedyMatch]:
    """Return a `find` for refusals whose text, in lower case, matches a pattern.

    `applies` tells whether the request has what the change is for. It is needed only
    where the change would alter other requests as well.
    """
    compiled = compile_late(pattern)

    def find(refused: RefusedRequest) -> RemedyMatch:
        is_match = compiled.search(refused.text.lower()) and applies(refused)
        return ("", "") if is_match else None

    return find


def rewrite_chat(
    table: RemedyTable,
    chat: ChatRequest,
    remedies: Collection[Remedy],
    *,
    new: Iterable[Remedy] = (),
) -> tuple[ChatRequest, tuple[str, ...]]:
    """Return the conversation to encode, and the notices for the user.

    Remedies are applied in the order of the table's rows, because some must come before
    others; those without a row are ignored. Notices of `new` ones are always included.
    """
    if not remedies:
        return chat, ()
    order = {change: number for number, change in enumerate(table)}
    applicable = sorted(
        (r for r in remedies if r.change in table), key=lambda r: order[r.change]
    )
    rewrites = ((table[remedy.change].rewrite, remedy) for remedy in applicable)
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

    Remedies are applied in the order in which they were found: a parameter may be
    renamed first and dropped later.
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
    new, parts_by_notice = tuple(new), dict[str, list[str]]()
    for change, remedy in changes:
        if change is None:
            continue
        row, before = table[remedy.change], item
        item = change(item, remedy)
        has_notice = row.notice and (chat.agent or not row.is_for_agents)
        if (
            has_notice
            and item != before
            and (remedy in new or row.repeats_notice(chat))
        ):
            parts_by_notice.setdefault(row.notice, []).append(remedy.what)
    notices = (
        notice.format(what=", ".join(parts)).strip()
        for notice, parts in parts_by_notice.items()
    )
    return item, tuple(notices)


# --- Refused parameters and efforts ---


def read_parameter(body: Json, path: str, default: Any = None) -> Any:
    """Return the value of a parameter, or the default if it is missing.

    A parameter is named by its path in the body: `temperature`, `options.num_ctx`.
    """
    if path in body:
        return body[path]
    name, _, tail = path.partition(".")
    inner = body.get(name)
    if not tail or not isinstance(inner, dict):
        return default
    return read_parameter(inner, tail, default)


def has_parameter(body: Json, path: str) -> bool:
    """Tell whether the body has a parameter."""
    return read_parameter(body, path, _MISSING) is not _MISSING


def drop_parameter(body: Json, path: str) -> Body:
    """Return a body without a parameter, and without objects that become empty."""
    name, _, tail = (path, "", "") if path in body else path.partition(".")
    if not has_parameter(body, path):
        return dict(body)
    if tail and (inner := drop_parameter(body[name], tail)):
        return {**body, name: inner}
    return {key: value for key, value in body.items() if key != name}


def set_parameter(body: Json, path: str, value: Any) -> Body:
    """Return a body in which a parameter has this value."""
    name, _, tail = path.partition(".")
    if not tail:
        return {**body, name: value}
    inner = body.get(name)
    return {
        **body,
        name: set_parameter(inner if isinstance(inner, dict) else {}, tail, value),
    }


def drop_row(paths: Iterable[str], *, with_extra: bool = True) -> RemedyRow:
    """Return the row that drops the first of these parameters that a refusal names.

    More specific names must come first. `with_extra`: also drop fields that the user
    added.
    """
    paths = tuple(paths)

    def find(refused: RefusedRequest) -> RemedyMatch:
        extra = refused.extra if with_extra else ()
        named = name_parameter(refused, (*paths, *extra))
        return (named, "") if named else None

    return RemedyRow(find, drop_named)


def drop_named(body: Json, remedy: Remedy) -> Body:
    """Return a body without the parameter that a remedy names."""
    return drop_parameter(body, remedy.what)


def rename_row(names: Mapping[str, str], *, unless: Iterable[str] = ()) -> RemedyRow:
    """Return the row that renames a refused parameter, once.

    `names` maps old to new paths. A refusal that also names a parameter of `unless` is
    left to other rows.
    """
    candidates = (*unless, *names)

    def find(refused: RefusedRequest) -> RemedyMatch:
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
        path, new = remedy.what, names[remedy.what]
        if not has_parameter(body, path):
            return dict(body)
        if "." in path or "." in new:
            value = read_parameter(body, path)
            return set_parameter(drop_parameter(body, path), new, value)
        return {new if key == path else key: value for key, value in body.items()}

    return RemedyRow(find, make)


def lower_row(paths: Iterable[str]) -> RemedyRow:
    """Return the row that lowers a parameter to the limit that a refusal names."""
    paths = tuple(paths)

    def find(refused: RefusedRequest) -> RemedyMatch:
        named = name_parameter(refused, paths)
        value = read_parameter(refused.body, named) if named else None
        if type(value) is not int:
            return None
        text = _LOWER_BOUND.sub("", refused.text)
        text = _EXCLUDED.sub(lambda bound: str(int(bound[1]) - 1), text)
        numbers = map(int, _NUMBER.findall(text))
        limit = max((n for n in numbers if 0 < n < value), default=0)
        return (named, str(limit)) if limit else None

    def teach(remedy: Remedy) -> ModelFacts:
        is_cap = remedy.what.rpartition(".")[2] in _OUTPUT_CAPS
        return ModelFacts("", max_output=int(remedy.version) if is_cap else 0)

    return RemedyRow(find, lower_named, teaches=teach)


def lower_named(body: Json, remedy: Remedy) -> Body:
    """Return a body in which a parameter is at most the remedy's `version`."""
    value = read_parameter(body, remedy.what)
    limit = int(remedy.version)
    is_above = type(value) is int and value > limit
    return set_parameter(body, remedy.what, limit) if is_above else dict(body)


def name_parameter(refused: RefusedRequest, paths: Iterable[str]) -> str:
    """Return the first of these parameters that was sent and that the refusal names.

    The refusal may name the path, or its last part as a word; "" if it names none.
    Refusals that state the context window do not count: they mention `max_tokens`, too.
    """
    error = refused.error
    states_window = isinstance(error, ContextLengthExceeded) and error.window
    if error.upstream_status not in _PARAMETER_STATUSES or states_window:
        return ""
    text = refused.text.lower()
    # xAI and Google write names in camel case as well.
    words = {word.replace("_", "") for word in re.findall(r"[a-z0-9_]+", text)}
    for path in paths:
        *parents, last = path.lower().split(".")
        is_named = last.replace("_", "") in words or (parents and path.lower() in text)
        if is_named and has_parameter(refused.body, path):
            return path
    return ""


def effort_row(*paths: str) -> RemedyRow:
    """Return the row that replaces a refused effort by the nearest accepted one.

    `paths` are the paths at which the effort may be in the body.
    """

    def find(refused: RefusedRequest) -> RemedyMatch:
        body = refused.body
        path = next((path for path in paths if has_parameter(body, path)), "")
        text, sent = refused.text.lower(), read_parameter(body, path)
        accepted_list = _ACCEPTED.search(text)
        if not accepted_list or not isinstance(sent, str):
            return None
        words = re.findall(r"[a-z]+", accepted_list[1])
        accepted = [word for word in words if word in EFFORTS]
        is_about_effort = "effort" in text or f"'{sent}'" in text
        return (path, " ".join(accepted)) if is_about_effort and accepted else None

    return RemedyRow(find, _use_nearest_effort)


def _use_nearest_effort(body: Json, remedy: Remedy) -> Body:
    sent = read_parameter(body, remedy.what)
    if not isinstance(sent, str):
        return dict(body)
    nearest = nearest_effort(sent, remedy.version.split())
    if not nearest:
        return drop_parameter(body, remedy.what)
    return set_parameter(body, remedy.what, nearest)


# --- Another dialect ---


def switch_row(names: Mapping[str, str]) -> RemedyRow:
    """Return the row for refusals that refer to another API of the same upstream.

    `names` maps text of a refusal, in lower case, to the dialect of that API. The row
    helps only if the upstream has that dialect.
    """

    def find(refused: RefusedRequest) -> RemedyMatch:
        text = refused.text.lower()
        mentioned = (dialect for words, dialect in names.items() if words in text)
        dialect = next((name for name in mentioned if name in refused.dialects), None)
        return (dialect, "") if dialect else None

    return RemedyRow(find, teaches=lambda r: ModelFacts("", dialect=r.what))


def missing_path_row(dialect: str) -> RemedyRow:
    """Return the row that switches to `dialect` where the server lacks the path.

    An unknown model is refused with the same status, but then the message says so.
    """

    def find(refused: RefusedRequest) -> RemedyMatch:
        error = refused.error
        if error.upstream_status not in _NO_SUCH_PATH:
            return None
        has_other_reason = class_of_words(error.message) is not None
        can_switch = dialect in refused.dialects and not has_other_reason
        return (dialect, "") if can_switch else None

    return RemedyRow(find)
