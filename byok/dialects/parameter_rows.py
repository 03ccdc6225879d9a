"""Remedies for refused parameters at any depth: drop, rename or lower them.

A parameter is named by its path in the body: `temperature`, `options.num_ctx`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from byok.chat import Json
from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow
from byok.errors import ContextLengthExceeded

_MISSING = object()
_OUTPUT_CAPS = {
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "num_predict",
}
# Statuses of refusals that name a parameter; OpenRouter uses 404.
_NAMING = frozenset({400, 404, 422})
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

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        extra = refused.extra if with_extra else ()
        named = name_parameter(refused, (*paths, *extra))
        return (named, "") if named else None

    return RemedyRow(find, lambda body, remedy: drop_parameter(body, remedy.what))


def rename_row(names: Mapping[str, str], *, unless: Iterable[str] = ()) -> RemedyRow:
    """Return the row that renames a refused parameter, once.

    `names` maps old to new paths. The row does not help where a refusal also names a
    parameter of `unless`.
    """
    candidates = (*unless, *names)

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
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

    def find(refused: RefusedRequest) -> tuple[str, str] | None:
        named = name_parameter(refused, paths)
        value = read_parameter(refused.body, named) if named else None
        if type(value) is not int:
            return None
        numbers = map(int, _NUMBER.findall(refused.text))
        most = max((n for n in numbers if 0 < n < value), default=0)
        return (named, str(most)) if most else None

    def teach(remedy: Remedy) -> ModelFacts:
        caps = remedy.what.rpartition(".")[2] in _OUTPUT_CAPS
        return ModelFacts("", max_output=int(remedy.version) if caps else 0)

    return RemedyRow(find, _lower, teaches=teach)


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
    words = set(re.findall(r"[a-z0-9_]+", text))
    return next((path for path in paths if _names(text, words, path, refused.body)), "")


def _names(text: str, words: set[str], path: str, body: Json) -> bool:
    *parents, last = path.lower().split(".")
    is_named = last in words or (bool(parents) and path.lower() in text)
    return is_named and has_parameter(body, path)


def _find(body: Json, path: str, default: Any) -> Any:
    if path in body:
        return body[path]
    name, _, rest = path.partition(".")
    inner = body.get(name)
    return _find(inner, rest, default) if rest and isinstance(inner, dict) else default


def _lower(body: Json, remedy: Remedy) -> Body:
    value = read_parameter(body, remedy.what)
    most = int(remedy.version)
    is_above = type(value) is int and value > most
    return set_parameter(body, remedy.what, most) if is_above else dict(body)
