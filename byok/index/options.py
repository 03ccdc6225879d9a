"""Settings of the code index."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """`roots` are followed from the start; `own_folders` are byok's and never read."""

    roots: Sequence[Path] = ()
    max_files: int = 250_000
    extensions: Sequence[str] = ()
    allow_secret: Sequence[str] = ()
    own_folders: Sequence[Path] = ()
    workers: int = 2
    parse_seconds: float = 2.0
    store_bytes: int = 2048 * _MIB
    poll_seconds: float = 60.0
    compare_seconds: float = 300.0
