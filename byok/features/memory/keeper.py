"""The thread that reads and writes the file of stored turns.

Turns that cannot be written are lost; the log says so once. The first write creates the
file; reading does not.
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
    list_conversations,
    measure,
    store_turn,
)
from byok.features.memory.turns import TurnReader, clean_name
from byok.storage.damage import DATABASE_ENDINGS, remove_set_aside
from byok.storage.database import HelpDatabase
from byok.storage.worker import Worker

_log = logging.getLogger(__name__)
_TIDY_SECONDS = 3600.0
_DEFAULT_LISTED, _MAX_LISTED = 20, 1000
_MAX_DAYS = 100_000
T = TypeVar("T")


class MemoryKeeper:
    """Stores, searches and deletes turns."""

    def __init__(
        self, path: Path, redactor: Callable[[str], str], clock: Callable[[], float]
    ) -> None:
        self._path = path
        self._redactor = redactor
        self._clock = clock
        self._file = HelpDatabase(path, MEMORY, "conversations are not remembered")
        self._worker = Worker("memory")
        self._days = 0  # for which turns are stored; 0: none expires
        self._tidy_at = 0.0
        self._warned = SaidOnce(1)

    def begin(self, days: int) -> None:
        """Store turns for so many days from now on."""
        self._days, self._tidy_at = days, 0.0
        self.run(self.measure)

    def pause(self) -> None:
        """Close the file until it is needed again; nothing expires meanwhile."""
        self._days = 0
        self.run(self._file.close)

    def store(self, reader: TurnReader) -> None:
        """Write the turn that was read; returns at once."""
        is_accepted = self._worker.offer(partial(self._store, reader))
        if not is_accepted and self._warned.is_new("lost"):
            _log.warning("answers ended faster than they could be remembered")

    def run(self, work: Callable[[], T]) -> "Future[T]":
        """Run a function in the thread, after all earlier ones."""
        return self._worker.run(work)

    def close(self) -> None:
        """Write pending turns, and close the file. Blocks, but not for long."""
        self._worker.close(self._file.close)

    # ---- In the thread

    def recall(self, request: RetrievalRequest) -> str:
        """Return passages of other conversations about a question, "" for none."""
        name = clean_name(request.conversation, self._redactor)
        request = replace(request, conversation=name)
        search = partial(recall, request=request, now=self._clock())
        return self._redactor(self._read(search) or "")

    def measure(self) -> MemorySize:
        """Count the stored turns."""
        return self._read(measure) or MemorySize(0, 0, 0.0)

    def answer(self, body: Json) -> dict[str, Any]:
        """Answer a command: delete what `forget` names, and list the rest.

        Raises:
            BadRequest: 422, the body cannot be used.
        """
        match body.get("forget"):
            case None:
                forgotten = 0
            case "all":
                forgotten = self._forget_all()
            case {"conversation": str(name)}:
                stored_name = clean_name(name, self._redactor)
                forgotten = self._forget(partial(forget_conversation, name=stored_name))
            case {"days": int(days)} if days in range(_MAX_DAYS) and days is not True:
                moment = self._clock() - days * DAY
                forgotten = self._forget(partial(forget_before, moment=moment))
            case _:
                raise BadRequest("Forget all, a conversation or old days.", status=422)
        count = body.get("list", _DEFAULT_LISTED)
        if type(count) is not int:
            raise BadRequest("The length of the list must be a number.", status=422)
        latest = partial(list_conversations, count=min(max(0, count), _MAX_LISTED))
        size = self.measure()
        return {
            **size._asdict(),
            "bytes": sum(_size(file) for file in self._files),
            "forgotten": forgotten,
            "latest": [row._asdict() for row in self._read(latest) or ()],
        }

    @property
    def _files(self) -> list[Path]:
        return [self._path.with_name(self._path.name + e) for e in DATABASE_ENDINGS]

    def _store(self, reader: TurnReader) -> None:
        if (turn := reader.finish()) is not None:
            self._file.use(partial(store_turn, turn=turn.clean(self._redactor)))
            self._tidy()

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Use the file without expired turns; None if there is no file."""
        if not self._path.exists():
            return None
        self._tidy()
        return self._file.use(work)

    def _tidy(self) -> None:
        now = time.monotonic()
        if self._days and now >= self._tidy_at:
            self._tidy_at = now + _TIDY_SECONDS
            delete = partial(forget_expired, now=self._clock(), days=self._days)
            if deleted := self._file.use(delete):
                _log.info("%d turns of conversations have expired", deleted)

    def _forget(self, work: Callable[[sqlite3.Connection], int]) -> int:
        """Delete turns; return their number.

        Raises:
            NotReady: the file cannot be changed.
        """
        deleted = self._read(work)
        if deleted is None and self._path.exists():
            raise NotReady(
                f"{self._path} cannot be changed; the log says why.",
                hint="byok memory forget --all deletes the file.",
            )
        return deleted or 0

    def _forget_all(self) -> int:
        """Delete the file, and damaged ones that were set aside."""
        turns = self.measure().turns
        self._file.close()
        for file in self._files:
            file.unlink(missing_ok=True)
        remove_set_aside(self._path)
        return turns


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
