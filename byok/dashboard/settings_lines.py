"""The lines of the settings file that a change touches, without what the page hides.

A line is shown if it is part of settings that can be changed on the page. Comments are
not: an old key may stand in one.
"""

import difflib
import tomllib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from byok.chat import Json
from byok.client_settings.encoding import decode_text
from byok.client_settings.setting import SettingPath
from byok.client_settings.toml_text import (
    KEY,
    NOTE,
    Statement,
    split_statements,
)
from byok.dashboard.editable import find_editable
from byok.dashboard.settings_form import hides_secret

_HIDDEN = "…"


class _Line(NamedTuple):
    text: str
    statement: Statement


def changed_lines(
    before: bytes, after: bytes, redact: Callable[[str], str]
) -> list[Json]:
    """Return the lines that change: {"sign": "+" or "-", "line"}, without neighbours.

    Both texts are valid TOML.
    """
    old, new = [*_lines(before)], [*_lines(after)]
    texts = [[line.text for line in lines] for lines in (old, new)]
    blocks = difflib.SequenceMatcher(a=texts[0], b=texts[1]).get_opcodes()
    rows = list[Json]()
    for tag, old_begin, old_end, new_begin, new_end in blocks:
        if tag == "equal":
            continue
        signed = [("-", line) for line in old[old_begin:old_end]]
        signed += [("+", line) for line in new[new_begin:new_end]]
        for sign, line in signed:
            shown = _show(line, redact, notes=not before)
            rows.append({"sign": sign, "line": shown})
    return rows


def _lines(raw: bytes) -> Iterator[_Line]:
    # Unlike splitlines: a value may have other ends of lines in it.
    for statement in split_statements(decode_text(raw).text):
        for text in statement.text.removesuffix("\n").split("\n"):
            yield _Line(text, statement)


def _show(line: _Line, redact: Callable[[str], str], *, notes: bool) -> str:
    statement = line.statement
    if statement.kind == KEY:
        is_shown = _is_editable(statement, redact)
    else:
        is_shown = notes or statement.kind != NOTE
    return redact(line.text) if is_shown or not line.text.strip() else _HIDDEN


def _is_editable(statement: Statement, redact: Callable[[str], str]) -> bool:
    table = statement.table
    return table is not None and all(
        find_editable(path) is not None and not hides_secret(value, redact)
        for path, value in _leaves(tomllib.loads(statement.text), table)
    )


def _leaves(given: Any, path: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    if isinstance(given, dict) and given:
        for name, value in given.items():
            yield from _leaves(value, (*path, name))
    else:
        yield path, given
