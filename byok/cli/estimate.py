"""Estimate a first build of the index from a scan that reads no file content."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from byok.cli.output import count_noun
from byok.core.errors import ConfigError
from byok.core.escapes import escape
from byok.search.index.files.ignore import rules_of
from byok.search.index.files.reading import Unreadable
from byok.search.index.files.roots import OwnFolders, check_root
from byok.search.index.files.scan import Counters, walk
from byok.search.index.types import FoundFile, IndexOptions

# Measured with two workers on two cores (docs/RETRIEVAL.md).
_FILES_PER_SECOND, _BYTES_PER_SECOND, _MEASURED_WORKERS = 1_100, 9_000_000, 2
_DISK_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Estimate:
    """The size of a folder, and the expected cost of indexing it."""

    root: str
    files: int
    bytes: int
    left_out: int
    seconds: float
    disk_bytes: int
    too_large: bool

    def as_json(self) -> dict[str, Any]:
        """Return it for a script."""
        return asdict(self)

    def text(self) -> str:
        """Return it as a few lines of text."""
        lines = [
            f"{escape(str(self.root))}: {count_noun(self.files, 'file')}, "
            f"{self.bytes / 1e6:,.1f} MB; {count_noun(self.left_out, 'name')} excluded",
            f"estimated: {_duration(self.seconds)} for the first build, "
            f"{self.disk_bytes / 1e6:,.1f} MB on disk (from rates measured elsewhere; "
            "yours may differ by a factor of two)",
        ]
        if self.too_large:
            lines.append(
                "That is more than context.max_files: the folder would not be indexed, "
                "and ripgrep would answer instead."
            )
        return "\n".join(lines)


def estimate(root: Path, options: IndexOptions) -> Estimate:
    """Scan a folder by the rules of the index.

    Raises:
        ConfigError: it cannot be a workspace.
    """
    root = check_root(root, OwnFolders(options.own_folders))
    files = size = names = 0
    try:
        for batch in walk(root, rules_of(root, options), Counters()):
            found = [entry for entry in batch if isinstance(entry, FoundFile)]
            names += len(batch) - len(found)
            files += len(found)
            size += sum(entry.facts.size for entry in found)
    except Unreadable as error:
        raise ConfigError(f"{root} cannot be read.") from error
    seconds = max(files / _FILES_PER_SECOND, size / _BYTES_PER_SECOND)
    return Estimate(
        str(root),
        files,
        size,
        names,
        round(seconds * _MEASURED_WORKERS / min(options.workers, _MEASURED_WORKERS), 1),
        round(size * _DISK_SHARE),
        files > options.max_files,
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min"
