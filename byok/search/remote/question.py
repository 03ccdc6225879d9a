"""Extract the words and file names of a question that a search server receives.

The question itself and whole code are never sent, only words, each once, the one of the
highest weight first. Secrets and paths of this machine are removed before the words are
extracted, because parts of a key or of a home folder's name are words too.
"""

import os
import re
from collections.abc import Callable
from typing import NamedTuple

from byok.core.redact import MARK
from byok.search.index.files.languages import LANGUAGE_OF
from byok.search.index.parse.tokens import COMPOUND
from byok.search.retrieval.masking import is_generated, mask
from byok.search.retrieval.query import TASK_WORDS, Query, parse_query

_MAX_TERMS, _MAX_NAMES = 10, 3
_MIN_TERM_CHARS = 3  # servers index trigrams; shorter terms need a scan
_MAX_QUESTION_CHARS = 10_000
_WORD = re.compile(r"[^\s\"'`()\[\]{}<>,;=:]+")
_PATH = re.compile(r"(?<![\w.~])(?:~\w*|[A-Za-z]:)?[/\\]{1,2}[^\s\"'`<>|()\[\]{},;]+")
_FILE_NAME = re.compile(
    r"(?<![\w/\\.-])(?:[\w.-]+/)*([A-Za-z0-9_][\w-]*(?:\.[\w-]+)+)(?!\w)"
)


class RemoteQuestion(NamedTuple):
    """The words and the file names to send, and the query, which stays here.

    Answers are ranked by the query.
    """

    terms: tuple[str, ...]
    names: tuple[str, ...]
    query: Query


def read_question(text: str, redact: Callable[[str], str]) -> RemoteQuestion:
    """Return the parts of a question to send; no terms if it has only stop words.

    `redact` removes the user's own keys, and values that look like keys.
    """
    lines = redact(text)[:_MAX_QUESTION_CHARS].split("\n")
    masked = (mask(line, longest=_MAX_QUESTION_CHARS) for line in lines)
    text = "\n".join(masked).replace(MARK, " ")
    text = _PATH.sub(lambda path: " " if _is_local_path(path[0]) else path[0], text)
    text = _WORD.sub(lambda word: " " if is_generated(word[0]) else word[0], text)
    query = parse_query(text)
    return RemoteQuestion(_search_terms(query), _find_file_names(text), query)


def _is_local_path(path: str) -> bool:
    """Tell a path of this machine from the path of a URL, such as `/api/users`."""
    if not path.startswith("/"):
        return True
    first = path.strip("/").partition("/")[0].rstrip(".:?!")
    return bool(first) and os.path.lexists(f"/{first}")


def _search_terms(query: Query) -> tuple[str, ...]:
    """Return the terms without a last i, which in a stem may stand for a y."""
    if query.only_stop_words:
        return ()
    ordered = sorted(query.terms, key=lambda term: -query.terms[term])
    meaningful = [term for term in ordered if term not in TASK_WORDS] or ordered
    parts = dict[str, None]()
    for term in meaningful:
        part = term.removeprefix(COMPOUND)
        part = part[:-1] if part.endswith("i") and len(part) > _MIN_TERM_CHARS else part
        if len(part) >= _MIN_TERM_CHARS and part.isalnum():
            parts[part] = None
    return (*parts,)[:_MAX_TERMS]


def _find_file_names(text: str) -> tuple[str, ...]:
    """Return the names of code files in a question, without their folders."""
    names = dict.fromkeys(match[1] for match in _FILE_NAME.finditer(text))
    code_files = [n for n in names if n.rpartition(".")[2].lower() in LANGUAGE_OF]
    return (*(name for name in code_files if name.isascii()),)[:_MAX_NAMES]
