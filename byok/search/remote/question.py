"""What of a question leaves for a search server: words, and names of files.

Never the question itself, nor code as it stands: its words, each once, the heaviest
first. What looks like a secret, and paths of this machine, are removed before the words
are read, because pieces of a key or of a home folder's name are words, too.
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

_MOST_TERMS, _MOST_NAMES = 10, 3
_SHORTEST = 3  # servers look up three characters at a time; shorter ones cost a scan
_LONGEST = 10_000  # of a question
_WORD = re.compile(r"[^\s\"'`()\[\]{}<>,;=:]+")
_PATH = re.compile(r"(?<![\w.~])(?:~\w*|[A-Za-z]:)?[/\\]{1,2}[^\s\"'`<>|()\[\]{},;]+")
_NAME = re.compile(
    r"(?<![\w/\\.-])(?:[\w.-]+/)*([A-Za-z0-9_][\w-]*(?:\.[\w-]+)+)(?!\w)"
)


class RemoteQuestion(NamedTuple):
    """The words that are sent, the names of files that are, and the whole query.

    The query stays here: answers are ranked by it.
    """

    terms: tuple[str, ...]
    names: tuple[str, ...]
    query: Query


def read_question(text: str, redact: Callable[[str], str]) -> RemoteQuestion:
    """Return what is asked; no terms where a question says nothing about code.

    `redact` removes the user's own keys, and what looks like one.
    """
    lines = redact(text)[:_LONGEST].split("\n")
    text = "\n".join(mask(line, longest=_LONGEST) for line in lines).replace(MARK, " ")
    text = _PATH.sub(lambda path: " " if _is_of_machine(path[0]) else path[0], text)
    text = _WORD.sub(lambda word: " " if is_generated(word[0]) else word[0], text)
    query = parse_query(text)
    return RemoteQuestion(_terms_of(query), _names_in(text), query)


def _is_of_machine(path: str) -> bool:
    """Tell a path of this machine from that of an address, such as `/api/users`."""
    if not path.startswith("/"):
        return True
    first = path.strip("/").partition("/")[0].rstrip(".:?!")
    return bool(first) and os.path.lexists(f"/{first}")


def _terms_of(query: Query) -> tuple[str, ...]:
    """Return the terms as parts of words: a stem's last y became an i."""
    if query.only_stop_words:
        return ()
    ordered = sorted(query.terms, key=lambda term: -query.terms[term])
    telling = [term for term in ordered if term not in TASK_WORDS] or ordered
    found = dict[str, None]()
    for term in telling:
        part = term.removeprefix(COMPOUND)
        part = part[:-1] if part.endswith("i") and len(part) > _SHORTEST else part
        if len(part) >= _SHORTEST and part.isalnum():
            found[part] = None
    return (*found,)[:_MOST_TERMS]


def _names_in(text: str) -> tuple[str, ...]:
    """Return the names of files that a question mentions, without their folders."""
    found = dict.fromkeys(match[1] for match in _NAME.finditer(text))
    known = [n for n in found if n.rpartition(".")[2].lower() in LANGUAGE_OF]
    return (*(name for name in known if name.isascii()),)[:_MOST_NAMES]
