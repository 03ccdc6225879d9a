"""How far the indexing of a workspace is, and what is wrong with it."""

import logging
from pathlib import Path

from byok.index.types import Phase

_log = logging.getLogger(__name__)


class WorkspaceStatus:
    """Written by the synchroniser, in the loop; read by status and answers.

    `waiting` of `queued` files are not searchable yet. `was_complete` says that answers
    may use what is indexed, also while it changes. `trouble` and `unwatched` are
    sentences for users, "" where all is well.
    """

    def __init__(self, root: Path) -> None:
        self.phase = Phase.SCANNING
        self.was_complete = False
        self.trouble = ""
        self.unwatched = ""
        self.waiting = 0
        self.queued = 0
        self._root = root

    @property
    def note(self) -> str:
        """What users should know, "" if nothing."""
        return "; ".join(filter(None, (self.trouble, self.unwatched)))

    @property
    def done(self) -> int:
        """How many of the queued files are searchable."""
        return self.queued - self.waiting

    @property
    def percentage(self) -> float:
        """How much of what was queued is done."""
        is_new = self.phase is Phase.SCANNING and not self.was_complete
        if is_new or self.phase is Phase.GONE:
            return 0.0
        return round(100.0 * self.done / self.queued, 1) if self.queued else 100.0

    def begin_scan(self) -> None:
        """Note that the whole folder is walked."""
        self._enter(Phase.SCANNING)

    def begin_indexing(self) -> None:
        """Note that files wait for being indexed."""
        self._enter(Phase.INDEXING)

    def complete(self) -> None:
        """Note that everything found is searchable."""
        self.waiting = 0
        self.was_complete = True
        self._enter(Phase.COMPLETE)

    def give_up(self, max_files: int) -> None:
        """Note that there are more files than the user allows."""
        self.was_complete = False
        self.trouble = f"more than {max_files:,} files: ripgrep answers instead"
        self._enter(Phase.TOO_LARGE)

    def lose_folder(self) -> None:
        """Note that the folder is gone; what is known of it is kept."""
        self.trouble = "its folder is gone; when it is back, byok follows it again"
        self._enter(Phase.GONE)

    def report_failure(self, error: BaseException) -> None:
        """Note that the index may not be up to date."""
        self.trouble = f"could not be synchronised: {error}"

    def clear_trouble(self) -> None:
        """Note that a walk went well."""
        self.trouble = ""

    def report_watching(self, sentence: str) -> None:
        """Note why changes are not seen at once, "" if they are."""
        self.unwatched = sentence

    def add_queued(self, count: int) -> None:
        """Add waiting files; the count starts at 0 when none waited."""
        if not self.waiting:
            self.queued = 0
        self.queued += count
        self.waiting += count

    def set_waiting(self, count: int) -> None:
        """Note how many files are left after some were taken out of the queue."""
        self.waiting = count

    def finish_one(self) -> None:
        """Note that one file was written."""
        self.waiting = max(0, self.waiting - 1)

    def _enter(self, phase: Phase) -> None:
        if self.phase is not phase or phase is Phase.SCANNING:
            self.phase = phase
            _log.info("%s: %s", self._root, phase)
