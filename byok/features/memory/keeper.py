"""The one thread that has the file of remembered turns open, and what it is asked.

What cannot be written is lost, of which the log tells once. The file is made when there
is something to write, and nothing that only reads makes it.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from byok.core.bounded import SaidOnce
from byok.core.chat import Json
from byok.core.code_query import RetrievalRequest
from byok.core.errors import BadRequest, NotReady
from byok.features.memory.recall import recall
from byok.features.memory.store import (
    DAY,
    MEMORY,
    MemorySize,
    forget_before,
    forget_conversation,
    forget_expired,
    keep_turn,
    list_conversations,
    measure,
)
from byok.features.memory.turns import TurnReader, clean_name
from byok.storage.damage import DATABASE_ENDINGS, remove_set_aside
from byok.storage.database import HelpDatabase
from byok.storage.worker import Worker

_log = logging.getLogger(__name__)
_TIDY_SECONDS = 3600.0
_LISTED, _MOST_LISTED = 20, 1000
_MOST_DAYS = 100_000
T = TypeVar("T")


class MemoryKeeper:
    """Keeps turns, finds them and forgets them; its methods may be called anywhere."""

    def __init__(
        self, path: Path, redactor: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._path = path
        self._redactor = redactor
        self._clock = clock
        self._file = HelpDatabase(path, MEMORY, "conversations are not remembered")
        self._worker = Worker("memory")
        self._days = 0  # for which turns are kept; 0: none expires
        self._tidy_at = 0.0
        self._said = SaidOnce(1)

    def begin(self, days: int) -> None:
        """Keep turns for so many days from now on."""
        self._days, self._tidy_at = days, 0.0
        self.run(self.measure)

    def rest(self) -> None:
        """Close the file until it is needed again, and let nothing expire."""
        self._days = 0
        self.run(self._file.close)

    def keep(self, reader: TurnReader) -> None:
        """Write the turn that was read; returns at once."""
        is_taken = self._worker.offer(partial(self._keep, reader))
        if not is_taken and self._said.is_new("lost"):
            _log.warning("answers ended faster than they could be remembered")

    def run(self, work: Callable[[], T]) -> "Future[T]":
        """Do something in the thread, behind all that was given before."""
        return self._worker.run(work)

    def close(self) -> None:
        """Write what is left, and close the file. Blocks, but not for long."""
        self._worker.close(self._file.close)

    # In the thread.

    def recall(self, asked: RetrievalRequest) -> str:
        """Return what other conversations say to a question, "" for nothing."""
        name = clean_name(asked.conversation, self._redactor)
        asked = replace(asked, conversation=name)
        asking = partial(recall, asked=asked, now=self._clock())
        return self._redactor(self._read(asking) or "")

    def measure(self) -> MemorySize:
        """Count what is kept."""
        return self._read(measure) or MemorySize(0, 0, 0.0)

    def answer(self, body: Json) -> dict[str, Any]:
        """Answer a command: forget what `forget` names, and tell what is kept then.

        Raises:
            BadRequest: 422, the body cannot be used.
        """
        match body.get("forget"):
            case None:
                forgotten = 0
            case "all":
                forgotten = self._forget_all()
            case {"conversation": str(name)}:
                kept = clean_name(name, self._redactor)
                forgotten = self._forget(partial(forget_conversation, name=kept))
            case {"days": int(days)} if days in range(_MOST_DAYS) and days is not True:
                moment = self._clock() - days * DAY
                forgotten = self._forget(partial(forget_before, moment=moment))
            case _:
                raise BadRequest("Forget all, a conversation or old days.", status=422)
        most = body.get("list", _LISTED)
        if type(most) is not int:
            raise BadRequest("The length of the list must be a number.", status=422)
        shown = partial(list_conversations, most=min(max(0, most), _MOST_LISTED))
        size = self.measure()
        return {
            **size._asdict(),
            "bytes": sum(_size(file) for file in self._files),
            "forgotten": forgotten,
            "latest": [row._asdict() for row in self._read(shown) or ()],
        }

    @property
    def _files(self) -> list[Path]:
        return [self._path.with_name(self._path.name + e) for e in DATABASE_ENDINGS]

    def _keep(self, reader: TurnReader) -> None:
        if (turn := reader.finish()) is not None:
            self._file.use(partial(keep_turn, turn=turn.clean(self._redactor)))
            self._tidy()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do something with the file, if there is one; what expired is gone before."""
        if not self._path.exists():
            return None
        self._tidy()
        return self._file.use(work)

    def _tidy(self) -> None:
        now = time.monotonic()
        if self._days and now >= self._tidy_at:
            self._tidy_at = now + _TIDY_SECONDS
            expiring = partial(forget_expired, now=self._clock(), days=self._days)
            if gone := self._file.use(expiring):
                _log.info("%d turns of conversations have expired", gone)

    def _forget(self, work: Callable[[sqlite3.Connection], int]) -> int:
        """Delete something, or say that it is still there.

        Raises:
            NotReady: the file cannot be changed.
        """
        gone = self._read(work)
        if gone is None and self._path.exists():
            raise NotReady(
                f"{self._path} cannot be changed; the log says why.",
                hint="byok memory forget --all deletes the file.",
            )
        return gone or 0

    def _forget_all(self) -> int:
        """Delete the file, and those that were damaged and set aside."""
        turns = self.measure().turns
        self._file.close()
        for file in self._files:
            file.unlink(missing_ok=True)
        remove_set_aside(self._path)
        return turns


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
