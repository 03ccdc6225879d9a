"""Texts for people in their language: English in the code, others from catalogues.

The code writes English sentences with values in them. They are translated where they
are shown to a person: by `cli/terminal.py`, on the pages of --help and of the
dashboard, and behind `[byok]` in a chat, in the language in which byok was started.
`translate` recognises a sentence by its fixed parts, so that commands are written in
plain English, and errors of the daemon or of an upstream are translated as well. A text
that is not in the catalogue stays English, as does all output for scripts. English
loads no catalogue.

A language is a folder of `languages/`, named like its locale (`zh`, or `pt_BR`). Its
`messages.toml` and `commands.toml` (the pages of --help) hold translations by English
text. {name} stands for a value; a name that begins with `count` is a number, with
`term` a word to translate. A text matches with a full stop behind it, too.
`errors.toml` holds the rows of `error_table.toml`. `tests/core/test_language.py` finds
missing and unused texts.
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


def match_language(locale: str) -> str:
    """Return the language of a locale such as zh_CN.UTF-8, "" if there is none.

    Without a catalogue for its country, it is that of the language: zh for zh_TW.
    """
    name = re.split(r"[.@]", locale.strip().replace("-", "_"))[0].lower()
    short = name.partition("_")[0]
    if short == ENGLISH or not name:
        return short
    known = {known.lower(): known for known in known_languages()}
    return known.get(name) or known.get(short, "")


def language_of_environment(environ: Mapping[str, str]) -> str:
    """Return the language of an environment, English if it names none.

    LC_ALL, LC_MESSAGES and LANG give the locale, in this order; LANGUAGE may list
    languages that take precedence, unless the locale is C. A locale with an encoding
    other than UTF-8 gives English, because byok writes UTF-8.
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
    """Translate into the language of a locale, or English, until the block ends."""
    reset_token = _in_force.set(match_language(locale) or ENGLISH)
    try:
        yield
    finally:
        _in_force.reset(reset_token)


def language_in_force() -> str:
    """Return the language into which texts are translated."""
    return _in_force.get()


def translate(text: str, kind: str = MESSAGES) -> str:
    """Return a text in the language in force; unchanged if it is not translated."""
    return translator_into(_in_force.get(), kind)(text)


def translator_into(language: str, kind: str = MESSAGES) -> Callable[[str], str]:
    """Return a function that translates into a language, whichever is in force."""
    return str if language == ENGLISH else _open_catalogue(language, kind).translate


def read_catalogue(language: str, kind: str) -> dict[str, Any]:
    """Read a file of a language; {} if there is no such file."""
    import tomllib

    try:
        return tomllib.loads((_FOLDER / language / f"{kind}.toml").read_text("utf-8"))
    except FileNotFoundError:
        return {}


@cache
def _open_catalogue(language: str, kind: str) -> "Catalogue":
    from byok.core.catalogue import Catalogue

    return Catalogue(read_catalogue(language, kind))
