"""Keeps the commits of one workspace up to date."""

import asyncio
from pathlib import Path

from byok.index.files.repository import Marks, marks_of, repository_of
from byok.index.store.packing import pack_history, unpack_history
from byok.index.store.store import Store
from byok.index.types import CommitHistory
from byok.index.workspace.git_history import head, read_history

# A busy machine may leave git too little time; an unreadable repository stays so.
_TRIES = 3


class Commits:
    """The git log of a workspace; runs in the event loop, reads in threads."""

    def __init__(self, workspace_id: int, root: Path, store: Store) -> None:
        self.history: CommitHistory | None = None
        self._id = workspace_id
        self._root = root
        self._store = store
        self._one_at_a_time = asyncio.Lock()
        self._marks: Marks | None = None  # none: nothing was read yet
        self._failures = 0

    async def read(self) -> None:
        """Read the git log if it has new commits."""
        async with self._one_at_a_time:
            marks = await asyncio.to_thread(self._marks_now)
            known = await self._read()
            self._failures = 0 if known else self._failures + 1
            # Without marks of a repository the next question tries again.
            self._marks = marks if known or self._failures >= _TRIES else ()

    async def are_new(self) -> bool:
        """Tell whether there may be new commits since the last read (`stat` calls)."""
        if self._marks is None or self._one_at_a_time.locked():
            return False
        return await asyncio.to_thread(self._marks_now) != self._marks

    def _marks_now(self) -> Marks:
        return marks_of(repository_of(self._root))

    async def _read(self) -> bool:
        """Read what is new; return whether git named the commit checked out."""
        commit = await asyncio.to_thread(head, self._root)
        if commit is None:
            return False
        if self.history and self.history.head == commit:
            return True
        with self._store.reading() as db:
            row = db.execute(
                "SELECT history FROM workspace WHERE id = ? AND head = ?",
                (self._id, commit),
            ).fetchone()
        if row and row[0]:
            self.history = await asyncio.to_thread(unpack_history, row[0])
            return True
        history = await asyncio.to_thread(read_history, self._root)
        self.history = history
        if history is not None:
            packed = await asyncio.to_thread(pack_history, history)
            self._store.change(
                lambda db: db.execute(
                    "UPDATE workspace SET head = ?, history = ? WHERE id = ?",
                    (commit, packed, self._id),
                )
            )
        return True
