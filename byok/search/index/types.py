"""Types of the code index that several of its modules share."""

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self, TypeAlias

from msgspec import Struct

# A commit that touched more files tells nothing about any of them.
MAX_COMMIT_FILES = 30
MAX_BYTES = 1024 * 1024  # of a file that is indexed
# The limits of the usual file systems.
_MAX_PATH_CHARS, _MAX_NAME_CHARS = 4096, 255
_MIB = 2**20


class SkipReason(StrEnum):
    """Why a file is not searchable: a word, and an `explanation` for users.

    The explanation follows "skipped: ".
    """

    explanation: str

    def __new__(cls, word: str, explanation: str = "") -> Self:
        """Make a reason whose value is the word alone."""
        reason = str.__new__(cls, word)
        reason._value_, reason.explanation = word, explanation
        return reason

    SECRET = "secret", "its name is one that holds keys or private data"
    IGNORED = "ignored", "a rule names it: of git, .augmentignore or byok's own"
    EXTENSION = "extension", "its extension is not among context.extensions"
    GENERATED = "generated", "a tool wrote it, nobody reads it (a lock file, a map)"
    BROKEN = "broken", "it is no notebook that can be read"
    TOO_LARGE = "too-large", "it is larger than 1 MiB"
    BINARY = "binary", "it is no text"
    MINIFIED = "minified", "its lines are too long for people"
    ENCODING = "encoding", "its bytes are no text in a known encoding"
    LINK = "link", "it is a symbolic link"
    WORK_TREE = (
        "work-tree",
        "it is another work tree of this repository; "
        "`byok index add` indexes it by itself",
    )
    NOT_A_FILE = "not-a-file", "it is not a regular file"
    NOT_ACCESSIBLE = "not-accessible", "it cannot be read"
    UNSTABLE = "unstable", "it kept changing while it was read"


class Kind(StrEnum):
    """The kind of a file, judged by its path; ranking weighs each kind differently."""

    CODE = "code"
    CONF = "conf"
    GEN = "gen"
    EXAMPLE = "example"
    TEST = "test"
    DOC = "doc"


class FileFacts(NamedTuple):
    """Fields of `stat`; a file whose facts are the same counts as unchanged."""

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
    """The indexed terms of one chunk, joined by spaces.

    `body` has the terms of its text, `symbols` those of the names that it defines, and
    `marks` stand for these names as a whole (`parse/prepare.py`).
    """

    body: str
    symbols: str
    marks: str = ""


class Prepared(Struct, frozen=True):
    """A file version, split into chunks and tokenised.

    `name` is its blob name (`blob_name`). A file without searchable content has a
    `reason` and no chunks. Each chunk has its entry in `spans` and the one with the
    same index in `documents`; `path_terms` are added to every document.
    """

    name: bytes
    size: int
    reason: SkipReason | None = None
    spans: tuple[Span, ...] = ()
    documents: tuple[Document, ...] = ()
    path_terms: str = ""


class WorkspaceTask(NamedTuple):
    """A file of a workspace to index, unless it still is the version named `known`."""

    workspace_id: int
    path: str
    root: str = ""
    known: bytes = b""


class UploadTask(NamedTuple):
    """A blob to index, from its stored content or an unchanged file that has it."""

    blob_id: int
    path: str


IndexTask: TypeAlias = WorkspaceTask | UploadTask


class ParseJob(Struct, frozen=True):
    """A file version for a worker to prepare: `content`, or the file below `root`.

    `key` is a serial number that the outcome repeats. A file that still is the version
    named `known` is not prepared again. With `plain` no parser is used, and neither for
    the versions named in `parser_crashers`, with which it crashed before.
    """

    key: int
    path: str
    root: str = ""
    content: bytes | None = None
    plain: bool = False
    known: bytes = b""
    parser_crashers: frozenset[bytes] = frozenset()


class ParseOutcome(Struct, frozen=True):
    """A worker's result of the job with the same `key`.

    Only files have `facts`. `plain` tells that no parser was used. Without `prepared`
    and `reason` the file still is the known version.
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
    """What the index is doing with a workspace."""

    SCANNING = "scanning"
    INDEXING = "indexing"
    COMPLETE = "complete"
    TOO_LARGE = "workspace-too-large"
    GONE = "folder-gone"


class Commit(NamedTuple):
    """A git commit; `time` is in Unix seconds, `files` are relative to the root.

    `files` has the first `MAX_COMMIT_FILES` of the `touched` files that the commit
    changed, then the present paths of those among them that were moved since.
    """

    hash: str
    time: int
    message: str
    files: tuple[str, ...]
    touched: int

    @property
    def telling(self) -> bool:
        """Whether it is small enough to say something about its files."""
        return 0 < self.touched <= MAX_COMMIT_FILES


class CommitHistory(Struct, frozen=True):
    """The commits reachable from `head`, without merges, the newest first."""

    head: str
    commits: tuple[Commit, ...]


def is_path(path: str) -> bool:
    """Tell whether a path is short enough for a file.

    Matching rules against an absurdly long path would take long.
    """
    return len(path) <= _MAX_PATH_CHARS and all(
        len(name) <= _MAX_NAME_CHARS for name in path.split("/")
    )


def blob_name(path: str, content: bytes) -> bytes:
    """Return the name of a file version: `sha256(path ‖ content)`, 32 bytes.

    Clients compute the same name. As there is no separator, two pairs of path and
    content can share a name.
    """
    return sha256(path.encode("utf-8", "surrogateescape") + content).digest()


class IndexOptions(Struct, frozen=True):
    """Settings of the code index.

    `roots` are the workspaces of the settings file. `own_folders` are byok's own
    folders, which are never read.
    """

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
