"""One turn of a conversation as it passes: what is kept of it, and what is cut.

Only what a request adds is read, its question and its answer, never the history before
it: a long conversation costs no more than a short one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import orjson

from byok.core.chat import ToolCall
from byok.core.events import StreamEvent, TextDelta
from byok.search.retrieval.masking import mask_lines

LONGEST_QUESTION, LONGEST_ANSWER = 4000, 8000
_LONGEST_NAME = 100
_LONGEST_PATH = 300
_MOST_NAMES = 100
_SPARE = 20_000  # characters behind the limit, so that a key is masked as a whole
_LONGEST_ARGUMENTS = 100_000
_OF_KEYS = "".join(map(chr, range(33, 127)))  # letters, digits and signs
_NAMES_FILE = re.compile(r"\w*(?:path|file|file_?name)s?", re.IGNORECASE)


class Turn(NamedTuple):
    """What passed in one request, and when; with a question, a new turn begins.

    `folders` are those that the client's window has open.
    """

    conversation: str
    folders: tuple[str, ...]
    began: float
    question: str
    answer: str = ""
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def clean(self, redactor: Callable[[str], str]) -> "KeptTurn":
        """Return the turn as it may be written: short, and without secrets."""

        def clean_names(names: Sequence[str], longest: int) -> str:
            return "\n".join(clean_text(name, longest, redactor) for name in names)

        return KeptTurn(
            clean_name(self.conversation, redactor),
            clean_names(self.folders, _LONGEST_PATH),
            self.began,
            clean_text(self.question, LONGEST_QUESTION, redactor),
            clean_text(self.answer, LONGEST_ANSWER, redactor),
            clean_names(self.tools, _LONGEST_NAME),
            clean_names(self.files, _LONGEST_PATH),
        )


class KeptTurn(NamedTuple):
    """A turn as it is written; of folders, tools and files there is one a line."""

    conversation: str
    folders: str
    began: float
    question: str
    answer: str
    tools: str
    files: str


def clean_text(text: str, longest: int, redactor: Callable[[str], str]) -> str:
    """Return the beginning of a text without secrets, and without half a character.

    More is read than is kept, and a word that is cut there is left out: half a key has
    no form by which it could be known.
    """
    read = text[: longest + _SPARE]
    if len(read) < len(text):
        read = read.rstrip(_OF_KEYS)
    masked = redactor(read.encode("utf-8", "replace").decode()).split("\n")
    return "\n".join(mask_lines(masked, longest=longest + _SPARE))[:longest]


def clean_name(conversation: str, redactor: Callable[[str], str]) -> str:
    """Return the name by which a conversation is kept."""
    return clean_text(conversation, _LONGEST_NAME, redactor)


class TurnReader:
    """Reads the events of an answer as they pass."""

    def __init__(self, begun: Turn) -> None:
        self._begun = begun._replace(
            question=begun.question[: LONGEST_QUESTION + _SPARE + 1]
        )
        self._texts: list[str] = []
        self._room = LONGEST_ANSWER + _SPARE + 1
        self._calls: list[tuple[str, str]] = []

    def is_of(self, conversation: str, redactor: Callable[[str], str]) -> bool:
        """Tell whether the answer is of a conversation, by its id or kept name."""
        kept = clean_name(self._begun.conversation, redactor)
        return kept == clean_name(conversation, redactor)

    def read(self, batch: Sequence[StreamEvent]) -> None:
        """Take the text and the tool calls of one network read."""
        for event in batch:
            if type(event) is TextDelta:
                if self._room > 0:
                    self._texts.append(event.text[: self._room])
                    self._room -= len(event.text)
            elif type(event) is ToolCall and len(self._calls) < _MOST_NAMES:
                fits = len(event.arguments) <= _LONGEST_ARGUMENTS
                self._calls.append((event.name, event.arguments if fits else ""))

    def finish(self) -> Turn | None:
        """Return the turn, None if the model said nothing."""
        answer = "".join(self._texts)
        if not (answer.strip() or self._calls):
            return None
        files = (file for _, given in self._calls for file in _files_in(given))
        return self._begun._replace(
            answer=answer,
            tools=tuple(dict.fromkeys(name for name, _ in self._calls)),
            files=tuple(dict.fromkeys(files))[:_MOST_NAMES],
        )


def _files_in(arguments: str) -> Iterator[str]:
    """Give the paths among the arguments of a call, by the names that these have."""
    try:
        given = orjson.loads(arguments)
    except (ValueError, TypeError):  # cut, or half a character
        return
    for name, value in given.items() if isinstance(given, dict) else ():
        if _NAMES_FILE.fullmatch(name):
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str) and len(one) <= _LONGEST_PATH and one.strip():
                    yield " ".join(one.split())
