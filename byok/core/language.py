"""Texts for people in their language: English in the code, others from catalogues.

The code writes English sentences with values in them. They are translated where they
leave for a person: by `cli/terminal.py`, on the pages of --help and of the dashboard,
and behind `[byok]` in a chat, in the language in which byok was started. `translate`
finds a sentence by its fixed parts, so that a command is written in plain English, and
so that errors of the daemon or of an upstream are translated as well. What a catalogue
lacks stays English, as does everything for scripts. English loads no catalogue.

A language is a folder of `languages/`, named like its locale (`zh`, or `pt_BR`). Its
`messages.toml` and `commands.toml` (the pages of --help) hold texts by the English one.
{name} stands for a value; one that begins with `count` is a number, with `term` a word
to translate. A text is found with a full stop behind it, too. `errors.toml` holds the
rows of `error_table.toml`. What is missing or dead is found by
`tests/core/test_language.py`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byok.core.catalogue import Catalogue

ENGLISH = "en"
MESSAGES, COMMANDS, ERRORS = "messages", "commands", "errors"
_FOLDER = Path(__file__).with_name("languages")
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
    return translator_into(_in_force.get(), kind)(text)


def translator_into(language: str, kind: str = MESSAGES) -> Callable[[str], str]:
    """Return what translates into a language, whatever is in force where it is used."""
    return str if language == ENGLISH else _open_catalogue(language, kind).translate


def read_catalogue(language: str, kind: str) -> dict[str, Any]:
    """Read a file of a language; one without it has no texts of this kind."""
    import tomllib

    try:
        return tomllib.loads((_FOLDER / language / f"{kind}.toml").read_text("utf-8"))
    except FileNotFoundError:
        return {}


@cache
def _open_catalogue(language: str, kind: str) -> "Catalogue":
    from byok.core.catalogue import Catalogue

    return Catalogue(read_catalogue(language, kind))
