"""Types of the code index that several of its modules share."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct


class SkipReason(StrEnum):
    """Why a file is not searchable; the value is shown to users."""

    SECRET = "secret"  # noqa: S105 - a word, not one
    IGNORED = "ignored"
    EXTENSION = "extension"
    GENERATED = "generated"
    BROKEN = "broken"
    TOO_LARGE = "too-large"
    BINARY = "binary"
    MINIFIED = "minified"
    ENCODING = "encoding"
    LINK = "link"
    WORK_TREE = "work-tree"
    NOT_A_FILE = "not-a-file"
    NOT_ACCESSIBLE = "not-accessible"
    UNSTABLE = "unstable"

    @property
    def explanation(self) -> str:
        """The reason in words, to follow "skipped: "."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    SkipReason.SECRET: "its name is one that holds keys or private data",
    SkipReason.IGNORED: "a rule names it: of git, .augmentignore or byok's own",
    SkipReason.EXTENSION: "its extension is not among context.extensions",
    SkipReason.GENERATED: "a tool wrote it, nobody reads it (a lock file, a map)",
    SkipReason.BROKEN: "it is no notebook that can be read",
    SkipReason.TOO_LARGE: "it is larger than 1 MiB",
    SkipReason.BINARY: "it is no text",
    SkipReason.MINIFIED: "its lines are too long for people",
    SkipReason.ENCODING: "its bytes are no text in a known encoding",
    SkipReason.LINK: "it is a symbolic link",
    SkipReason.WORK_TREE: "it is another work tree of this repository; "
    "`byok index add` indexes it by itself",
    SkipReason.NOT_A_FILE: "it is not a regular file",
    SkipReason.NOT_ACCESSIBLE: "it cannot be read",
    SkipReason.UNSTABLE: "it kept changing while it was read",
}


class Kind(StrEnum):
    """Kind of a file by its path; ranking weighs each kind differently."""

    CODE = "code"
    CONF = "conf"
    GEN = "gen"
    EXAMPLE = "example"
    TEST = "test"
    DOC = "doc"


class FileFacts(NamedTuple):
    """What `stat` reports; a file with the same facts is taken as unchanged."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class FoundFile(NamedTuple):
    """A file of a workspace that may be indexed; `path` is relative, with `/`."""

    path: str
    facts: FileFacts


class Skipped(NamedTuple):
    """A path of a workspace that is not indexed."""

    path: str
    reason: SkipReason


class Span(NamedTuple):
    """A chunk of a file: first and last line (from 0, inclusive), and its length."""

    first: int
    last: int
    chars: int


class Document(NamedTuple):
    """The terms of one chunk, joined by spaces: of its text and of its symbols.

    `marks` stand for the exact names that it defines (`parse/prepare.py`).
    """

    body: str
    symbols: str
    marks: str = ""


class Prepared(Struct, frozen=True):
    """A file version cut and tokenised.

    `name` is the blob name, `sha256(path ‖ content)` (32 bytes). A file without
    searchable content has a reason and no spans. `spans` and `documents` run
    parallel; `path_terms` belongs to each document.
    """

    name: bytes
    size: int
    reason: SkipReason | None = None
    spans: tuple[Span, ...] = ()
    documents: tuple[Document, ...] = ()
    path_terms: str = ""


class WorkspaceTask(NamedTuple):
    """A file of a workspace that must be indexed, unless it is the version `known`."""

    workspace_id: int
    path: str
    root: str = ""
    known: bytes = b""


class UploadTask(NamedTuple):
    """A blob that must be indexed from the content that byok can get for it."""

    blob_id: int
    path: str


IndexTask: TypeAlias = WorkspaceTask | UploadTask


class ParseJob(Struct, frozen=True):
    """A file version to prepare: `content`, or the file below `root`.

    `key` is a serial number, which its outcome bears. A file that still is the
    version `known` need not be prepared. `plain` leaves the parser out; so it is for
    versions that crashed it before, the `parser_crashers`.
    """

    key: int
    path: str
    root: str = ""
    content: bytes | None = None
    plain: bool = False
    known: bytes = b""
    parser_crashers: frozenset[bytes] = frozenset()


class ParseOutcome(Struct, frozen=True):
    """The result of the job with a key, as its worker sends it.

    There are `facts` only for files, and `plain` tells that no parser was used. With
    neither `prepared` nor `reason` the file is still the known version.
    """

    key: int
    prepared: Prepared | None
    reason: SkipReason | None = None
    facts: FileFacts | None = None
    plain: bool = False
    read_seconds: float = 0.0
    calculate_seconds: float = 0.0


class State(StrEnum):
    """What the index as a whole is doing."""

    STANDBY = "standby"
    INDEXING = "indexing"
    INDEXED = "indexed"
    ERROR = "error"


class Phase(StrEnum):
    """What is being done with a workspace."""

    SCANNING = "scanning"
    INDEXING = "indexing"
    COMPLETE = "complete"
    TOO_LARGE = "workspace-too-large"
    GONE = "folder-gone"


# A commit with more files says nothing about any of them.
MOST_FILES = 30


class Commit(NamedTuple):
    """A git commit; `time` in unix seconds, `files` relative to the root.

    `files` are the first `MOST_FILES`, and behind them present paths of those that were
    moved since; `touched` counts all that it touched.
    """

    hash: str
    time: int
    message: str
    files: tuple[str, ...]
    touched: int

    @property
    def telling(self) -> bool:
        """Whether it is small enough to say something about its files."""
        return 0 < self.touched <= MOST_FILES


class CommitHistory(Struct, frozen=True):
    """Commits without merges, the newest first, as reachable from `head`."""

    head: str
    commits: tuple[Commit, ...]


# Names of file versions, and the size limits of a file and its path.


MAX_BYTES = 1024 * 1024
_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # of every system


def is_path(path: str) -> bool:
    """Tell whether a file can have such a path; what judges paths takes time."""
    return len(path) <= _LONGEST_PATH and all(
        len(name) <= _LONGEST_NAME for name in path.split("/")
    )


def blob_name(path: str, content: bytes) -> bytes:
    """Return the name of a file version: `sha256(path ‖ content)`, 32 bytes.

    Clients compute the same one. There is no separator: two pairs can share a name.
    """
    return sha256(path.encode("utf-8", "surrogateescape") + content).digest()


# Settings of the code index.


_MIB = 2**20


class IndexOptions(Struct, frozen=True):
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
