"""Texts for people in their language: English in the code, others from catalogues.

The code writes English sentences with values in them. They are translated where they
leave for a person: by `cli/terminal.py` and on the pages of --help. There `translate`
finds a sentence by its fixed parts, so that a command is written in plain English, and
so that errors of the daemon or of an upstream are translated as well. What a catalogue
lacks stays English, as does everything for scripts. English reads no catalogue.

A language is a folder of `languages/`, named like its locale (`zh`, or `pt_BR`). Its
`messages.toml` and `commands.toml` (the pages of --help) hold texts by the English one.
{name} stands for a value; one that begins with `count` is a number, with `term` a word
to translate. `errors.toml` holds the rows of `error_table.toml`. What is missing or
dead is found by `tests/core/test_language.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ENGLISH = "en"
MESSAGES, COMMANDS, ERRORS = "messages", "commands", "errors"
SLOT = re.compile(r"\{(\w+)\}")
_FOLDER = Path(__file__).with_name("languages")
_COUNT, _NUMBER = "count", re.compile(r"[\d.,]+")
_TERM = "term"
_SENTENCES = re.compile(r"(?<=[.?!]) (?=\S)")
_BEHIND_NAME = ": "
_CLAUSES = re.compile(r"([,;] )")
_DEEPEST = 4  # texts in values of texts
_in_force = ContextVar("language", default=ENGLISH)


def known_languages() -> list[str]:
    """Return the names of all languages, English first."""
    return [ENGLISH, *sorted(path.name for path in _FOLDER.iterdir() if path.is_dir())]


def match_language(wanted: str) -> str:
    """Return the language of a locale such as zh_CN.UTF-8, or "".

    One that has no catalogue for its country gets that of the language: zh_TW is zh.
    """
    name = re.split(r"[.@]", wanted.strip().replace("-", "_"))[0].lower()
    short = name.partition("_")[0]
    if short == ENGLISH or not name:
        return short
    known = {known.lower(): known for known in known_languages()}
    return known.get(name) or known.get(short, "")


def wanted_language(environ: Mapping[str, str]) -> str:
    """Return the language of an environment, which is English if it names none.

    LC_ALL, LC_MESSAGES and LANG give the locale, in this order; LANGUAGE may list
    languages that are preferred to its own, unless it is C. One with an encoding
    other than UTF-8 gets English: byok writes UTF-8.
    """
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environ[name] for name in names if environ.get(name)), "")
    name, _, encoding = locale.partition("@")[0].partition(".")
    is_utf8 = encoding.lower().replace("-", "") in ("", "utf8")
    if name in ("C", "POSIX") or not is_utf8:
        return ENGLISH
    preferred = (*environ.get("LANGUAGE", "").split(":"), name)
    return next(filter(None, map(match_language, preferred)), ENGLISH)


def use_language(name: str) -> None:
    """Translate into this language from now on."""
    _in_force.set(name)


@contextmanager
def speaking(locale: str) -> Iterator[None]:
    """Translate into the language of a locale for a while, into English if unknown."""
    before = _in_force.set(match_language(locale) or ENGLISH)
    try:
        yield
    finally:
        _in_force.reset(before)


def language_in_force() -> str:
    """Return the language into which texts are translated."""
    return _in_force.get()


def translate(text: str, kind: str = MESSAGES) -> str:
    """Return a text in the language in force; as it is where that has none."""
    language = _in_force.get()
    return text if language == ENGLISH else _catalogue(language, kind).translate(text)


def read_catalogue(language: str, kind: str) -> dict[str, Any]:
    """Read a file of a language; one without it has no texts of this kind."""
    import tomllib

    try:
        return tomllib.loads((_FOLDER / language / f"{kind}.toml").read_text("utf-8"))
    except FileNotFoundError:
        return {}


@cache
def _catalogue(language: str, kind: str) -> "Catalogue":
    return Catalogue(read_catalogue(language, kind))


class _Template(NamedTuple):
    """A text with values: its fixed parts, the values' names, and the translation."""

    parts: Sequence[str]
    names: Sequence[str]
    translation: str

    def values_in(self, text: str) -> dict[str, str] | None:
        """Return the values with which this is the text; None if there are none."""
        first, *middle, last = self.parts
        at, end = len(first), len(text) - len(last)
        if at > end or not (text.startswith(first) and text.endswith(last)):
            return None
        values = []
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return None
            values.append(text[at:found])
            at = found + len(part)
        if not first and _SENTENCES.search(values[0] if values else text[at:end]):
            return None
        given = dict(zip(self.names, (*values, text[at:end]), strict=True))
        counts = (value for name, value in given.items() if name.startswith(_COUNT))
        return given if all(map(_NUMBER.fullmatch, counts)) else None

    def translate(self, values: Mapping[str, str]) -> str:
        """Return the translation with these values."""
        return SLOT.sub(lambda slot: values.get(slot[1], slot[0]), self.translation)


class Catalogue:
    """The texts of a language, by the English ones."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Prepare the texts; a value is {name} in both languages."""
        self._whole = {key: text for key, text in texts.items() if not SLOT.search(key)}
        templates = (
            _Template(SLOT.split(key)[::2], SLOT.findall(key), text)
            for key, text in texts.items()
            if SLOT.search(key)
        )
        # A text that begins alike is the likeliest, then the one with most in common.
        self._templates = sorted(
            templates,
            key=lambda template: (
                not template.parts[0],
                -sum(map(len, template.parts)),
            ),
        )

    def translate(self, text: str, depth: int = 0) -> str:
        """Return a text in this language, as a whole, by sentences or by clauses."""
        body = text.strip(" ")
        if not body:
            return text
        done = self._whole_text(body, depth)
        if done is None:
            done = "".join(self._sentences(body, depth))
        return text.replace(body, done, 1)

    def _sentences(self, body: str, depth: int) -> Iterator[str]:
        """Give the sentences; there is no space behind a full-width sign."""
        before = ""
        for sentence in _SENTENCES.split(body):
            if before:
                yield " " if before[-1].isascii() else ""
            before = (
                self._whole_text(sentence, depth)
                or self._clauses(sentence, depth)
                or self._behind_name(sentence, depth)
                or sentence
            )
            yield before

    def _clauses(self, text: str, depth: int) -> str | None:
        """Return a text of clauses that are all known, or names."""
        clauses = _CLAUSES.split(text)  # every second one is a sign
        done = [self._whole_text(clause, depth) for clause in clauses]
        is_known = any(done[::2]) and all(
            known or " " not in clause  # a name
            for known, clause in zip(done[::2], clauses[::2], strict=True)
        )
        pairs = zip(done, clauses, strict=True)
        return "".join(known or clause for known, clause in pairs) if is_known else None

    def _behind_name(self, text: str, depth: int) -> str | None:
        """Return a text that begins with a name, such as that of an upstream."""
        name, sign, rest = text.partition(_BEHIND_NAME)
        if not rest or depth == _DEEPEST:
            return None
        known = self.translate(rest, depth + 1)
        return None if known == rest else f"{name}{self._whole.get(sign, sign)}{known}"

    def _whole_text(self, text: str, depth: int) -> str | None:
        if (whole := self._whole.get(text)) is not None or depth == _DEEPEST:
            return whole
        for template in self._templates:
            if (values := template.values_in(text)) is not None:
                return template.translate(
                    {
                        name: self._value(name, value, depth + 1)
                        for name, value in values.items()
                    }
                )
        return None

    def _value(self, name: str, value: str, depth: int) -> str:
        """Return a value; one of a single word may be a name, unless it is a term."""
        is_text = " " in value or name.startswith(_TERM)
        return self.translate(value, depth) if is_text else value
