"""Types of questions about code and their answers, independent of client protocols."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

DEFAULT_LENGTH, MAX_LENGTH = 20_000, 80_000  # characters of an answer
_NAME = re.compile(r"[0-9a-f]{64}")
_FOREIGN_PREFIX = bytes(33)  # longer than any name that byok makes
_MAX_FOREIGN_CHARS = 512


class SearchMode(StrEnum):
    """The index, with ripgrep until it is built; or one of them alone."""

    AUTO = "auto"
    INDEX = "index"
    RIPGREP = "ripgrep"


class RerankMode(StrEnum):
    """Whether a model puts the best files of a search in order."""

    OFF = "off"
    MODEL = "model"


class BlobNames(Struct, frozen=True):
    """A set of blobs: those of `checkpoint`, and `added` ones, without `deleted` ones.

    The names of added and deleted blobs are in the form of `to_bytes`.
    """

    checkpoint: str = ""
    added: tuple[bytes, ...] = ()
    deleted: tuple[bytes, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the client named no set at all."""
        return not self.checkpoint and not self.added


def to_bytes(name: str) -> bytes:
    """Return a name as it is stored: 32 bytes, or zero bytes and a foreign name."""
    if _NAME.fullmatch(name):
        return bytes.fromhex(name)
    return _FOREIGN_PREFIX + name[:_MAX_FOREIGN_CHARS].encode("utf-8", "replace")


def to_text(name: bytes) -> str:
    """Return a stored name as its client wrote it."""
    if name.startswith(_FOREIGN_PREFIX):
        return name.removeprefix(_FOREIGN_PREFIX).decode("utf-8", "replace")
    return name.hex()


class Upload(NamedTuple):
    """A file version as a client sends it; `name` is the client's, b"" for none."""

    name: bytes
    path: str
    content: bytes


class FileChunk(NamedTuple):
    """A range of a client's file that a model was shown; `end` is exclusive.

    Positions are code points of the file as the client has it.
    """

    blob_name: str
    start: int
    end: int


class CodeQuestion(Struct, frozen=True):
    """A question about code; `guided` are the blobs that the user attached to it."""

    question: str
    blobs: BlobNames
    guided: tuple[bytes, ...] = ()


class CodeContextBlock(Struct, frozen=True):
    """The code for a chat, and facts about blobs that the client should know."""

    text: str = ""
    chunks: tuple[FileChunk, ...] = ()
    unknown: tuple[str, ...] = ()
    checkpoint_found: bool = True


class UnknownBlobs(Struct, frozen=True):
    """The blobs of a client that are not stored here, named as the client does."""

    names: tuple[str, ...] = ()
    checkpoint_found: bool = True


_NO_BLOBS = BlobNames()


class RetrievalRequest(Struct, frozen=True):
    """A query for excerpts of code, commits or conversations; `length` in characters.

    With a `symbol`, it asks where this name is defined and used. `roots` are the
    workspaces to search, `folders` those that the client has open (byok's own fields).
    `conversation` is the id of the one that asks, "" if it is unknown.
    """

    query: str
    length: int = DEFAULT_LENGTH
    blobs: BlobNames = _NO_BLOBS
    code: bool = True
    commits: bool = False
    conversations: bool = False
    symbol: str = ""
    roots: Sequence[str] = ()
    folders: Sequence[str] = ()
    conversation: str = ""


class Retrieval(Struct, frozen=True):
    """The answer, and facts about blobs that the client should know."""

    text: str
    unknown: Sequence[bytes] = ()
    checkpoint_found: bool = True
    seconds: float = 0.0


class WorkspaceReport(Struct, frozen=True):
    """How far a workspace is indexed; `percentage` refers to the files to be read.

    `note` describes a problem, "" if there is none; `counters` are those of the last
    walk.
    """

    root: str
    phase: str
    percentage: float
    files_tracked: int
    files_processed: int
    note: str
    counters: Mapping[str, float]


class RemoteStatus(Struct, frozen=True):
    """The state of the search server in the settings; counts since byok started.

    No request is sent unless it is `enabled`. After a failure, `note` says why no
    request is sent for `next_try` seconds; "" if there was none.
    """

    url: str
    enabled: bool
    asked: int
    answered: int
    note: str
    next_try: float


class IndexStatus(Struct, frozen=True):
    """The state of the whole index; `waiting` is the number of open tasks.

    `remote` is the search server beside it, None if the settings name none.
    """

    state: str
    error: str
    waiting: int
    mode: SearchMode
    workspaces: Sequence[WorkspaceReport] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    remote: RemoteStatus | None = None


class ExcludingRule(Struct, frozen=True):
    """The rule that leaves out a path: a line of an ignore file, or byok's own rule.

    `cure` is the text that overrides it when it is added to `place`, an ignore file or
    a setting; "" if none does.
    """

    pattern: str = ""
    file: str = ""
    line: int = 0
    cure: str = ""
    place: str = ""

    @property
    def words(self) -> str:
        """The line and its position, "" if the rule is no line."""
        if self.file:
            return f"{self.pattern} in {self.file}, line {self.line}"
        own_rule = f"{self.pattern}, byok's own rule for what programs write"
        return own_rule if self.pattern else ""

    @property
    def advice(self) -> str:
        """How the user can have the path indexed, "" if that is not possible."""
        cure = f"To index it, add {self.cure} to {self.place}."
        return cure if self.cure else ""


class PathStatus(Struct, frozen=True):
    """Whether a path is indexed; `reason` and `rule` say why it is left out.

    `advice` says what to do, `cure` is the text to add to a setting or an ignore file.
    Rules match names, so they may also leave out a path that does not exist.

    `notes` list lines of ignore files that have no effect. If the path does not exist,
    `alike` are indexed files whose paths end with it.
    """

    path: str
    what: str
    reason: str | None = None
    explanation: str = ""
    notes: Sequence[str] = ()
    exists: bool = True
    rule: str = ""
    advice: str = ""
    cure: str = ""
    alike: Sequence[str] = ()
