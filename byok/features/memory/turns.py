"""Reads one turn of a conversation, and cuts it for the store.

Only the question and the answer of a request are read, never the history before them: a
long conversation costs no more than a short one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import orjson

from byok.core.chat import ToolCall
from byok.core.events import StreamEvent, TextDelta
from byok.search.retrieval.masking import mask_lines

DAY = 86_400
_LAST_DAY = 253_402_128_000  # in the year 9999 in every time zone
LONGEST_QUESTION, LONGEST_ANSWER = 4000, 8000
_MAX_NAME_CHARS = 100
_MAX_PATH_CHARS = 300
_MAX_CALLS = 100
_SPARE = 20_000  # characters after the limit, so that a key is masked as a whole
_MAX_ARGUMENT_CHARS = 100_000
_KEY_CHARS = "".join(map(chr, range(33, 127)))  # letters, digits and signs
_FILE_ARGUMENT = re.compile(r"\w*(?:path|file|file_?name)s?", re.IGNORECASE)


def day_of(moment: float) -> str:
    """Return the day of a moment in this machine's time zone, in ISO 8601.

    Any moment is accepted, as a clock may have been wrong.
    """
    seconds = min(max(DAY, moment), _LAST_DAY)
    return datetime.fromtimestamp(seconds).date().isoformat()


class Turn(NamedTuple):
    """The content of one request; with a question, a new turn begins.

    `began` is in seconds since 1970, `folders` are open in the client's window.
    """

    conversation: str
    folders: tuple[str, ...]
    began: float
    question: str
    answer: str = ""
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def clean(self, redactor: Callable[[str], str]) -> "StoredTurn":
        """Return the turn for the store: short, and without secrets."""

        def clean_names(names: Sequence[str], longest: int) -> str:
            return "\n".join(clean_text(name, longest, redactor) for name in names)

        return StoredTurn(
            clean_name(self.conversation, redactor),
            clean_names(self.folders, _MAX_PATH_CHARS),
            self.began,
            clean_text(self.question, LONGEST_QUESTION, redactor),
            clean_text(self.answer, LONGEST_ANSWER, redactor),
            clean_names(self.tools, _MAX_NAME_CHARS),
            clean_names(self.files, _MAX_PATH_CHARS),
        )


class StoredTurn(NamedTuple):
    """A turn in the store; folders, tools and files have a line each."""

    conversation: str
    folders: str
    began: float
    question: str
    answer: str
    tools: str
    files: str


def clean_text(text: str, longest: int, redactor: Callable[[str], str]) -> str:
    """Return the beginning of a text without secrets and lone surrogates.

    More than `longest` characters are searched for secrets, and a word that is cut at
    the end of these is left out: half of a key cannot be recognised.
    """
    searched = text[: longest + _SPARE]
    if len(searched) < len(text):
        searched = searched.rstrip(_KEY_CHARS)
    masked = redactor(searched.encode("utf-8", "replace").decode()).split("\n")
    return "\n".join(mask_lines(masked, longest=longest + _SPARE))[:longest]


def clean_name(conversation: str, redactor: Callable[[str], str]) -> str:
    """Return the name of a conversation in the store."""
    return clean_text(conversation, _MAX_NAME_CHARS, redactor)


class TurnReader:
    """Reads the events of an answer as they pass."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn._replace(
            question=turn.question[: LONGEST_QUESTION + _SPARE + 1]
        )
        self._texts: list[str] = []
        self._remaining = LONGEST_ANSWER + _SPARE + 1  # characters
        self._calls: list[tuple[str, str]] = []

    def is_of(self, conversation: str, redactor: Callable[[str], str]) -> bool:
        """Tell whether the answer is of a conversation, by its id or stored name."""
        name = clean_name(self._turn.conversation, redactor)
        return name == clean_name(conversation, redactor)

    def read(self, batch: Sequence[StreamEvent]) -> None:
        """Store the text and the tool calls of one network read."""
        for event in batch:
            if type(event) is TextDelta:
                if self._remaining > 0:
                    self._texts.append(event.text[: self._remaining])
                    self._remaining -= len(event.text)
            elif type(event) is ToolCall and len(self._calls) < _MAX_CALLS:
                fits = len(event.arguments) <= _MAX_ARGUMENT_CHARS
                self._calls.append((event.name, event.arguments if fits else ""))

    def finish(self) -> Turn | None:
        """Return the turn, None if the answer was empty."""
        answer = "".join(self._texts)
        if not (answer.strip() or self._calls):
            return None
        files = (file for _, arguments in self._calls for file in _files_in(arguments))
        return self._turn._replace(
            answer=answer,
            tools=tuple(dict.fromkeys(name for name, _ in self._calls)),
            files=tuple(dict.fromkeys(files))[:_MAX_CALLS],
        )


def _files_in(arguments: str) -> Iterator[str]:
    """Yield the paths among the arguments of a call, which have names of paths."""
    try:
        fields = orjson.loads(arguments)
    except (ValueError, TypeError):  # cut off, or a lone surrogate
        return
    for name, value in fields.items() if isinstance(fields, dict) else ():
        if _FILE_ARGUMENT.fullmatch(name):
            for path in value if isinstance(value, list) else [value]:
                is_path = isinstance(path, str) and len(path) <= _MAX_PATH_CHARS
                if is_path and path.strip():
                    yield " ".join(path.split())
