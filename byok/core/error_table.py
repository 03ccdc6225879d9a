"""The meaning, usual causes and remedies of each error code.

The rows are in `error_table.toml`; `byok explain` prints them, and
docs/reference/errors.md is generated from them. Translations are in `languages/`.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

from byok.core.language import ENGLISH, ERRORS, read_catalogue

_TABLE = "error_table.toml"
# The groups in the order of the page, with their titles.
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "reach": "The upstream cannot be reached",
        "address": "Something else answers at that address",
        "keys": "Keys",
        "limits": "Limits and caps",
        "refused": "The upstream rejects the request",
        "answer": "The answer cannot be used",
        "machine": "Starting byok, files and settings",
        "daemon": "The daemon",
        "access": "Access to byok",
        "index": "Index and vectors",
        "request": "Client requests",
        "captures": "Captures",
    }
)


class ErrorWeight(StrEnum):
    """How much a failure concerns the user, the most urgent first."""

    NEEDS_YOU = "needs_you"  # it goes on until the user does something
    LOOK = "look"
    CURED = "cured"  # the user need not do anything


class ErrorRow(NamedTuple):
    """One code: `what` is a sentence, `causes` are phrases, `cures` are sentences."""

    code: str
    group: str
    what: str
    causes: tuple[str, ...]
    cures: tuple[str, ...]
    weight: ErrorWeight = ErrorWeight.LOOK


@cache
def error_rows(language: str = ENGLISH) -> Mapping[str, ErrorRow]:
    """Return the rows by code, in the order of the file."""
    import tomllib

    text = (resources.files(__package__) / _TABLE).read_text("utf-8")
    translated = {} if language == ENGLISH else read_catalogue(language, ERRORS)
    return MappingProxyType(
        {
            code: ErrorRow(
                code,
                row["group"],
                row["what"],
                tuple(row["causes"]),
                tuple(row["cures"]),
                ErrorWeight(row.get("weight", ErrorWeight.LOOK)),
            )
            for code, english in tomllib.loads(text).items()
            for row in [english | translated.get(code, {})]
        }
    )
