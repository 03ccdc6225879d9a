"""Types of questions about code and their answers, independent of client protocols."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field

DEFAULT_LENGTH, LONGEST = 20_000, 80_000  # characters of an answer
_NAME = re.compile(r"[0-9a-f]{64}")
_FOREIGN = bytes(33)  # longer than any name made here
_LONGEST_FOREIGN = 512


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
    """The set of a request: `set(checkpoint) ∪ added − deleted`; names as bytes."""

    checkpoint: str = ""
    added: tuple[bytes, ...] = ()
    deleted: tuple[bytes, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the client named no set at all."""
        return not self.checkpoint and not self.added


def to_bytes(name: str) -> bytes:
    """Return a name as it is kept: 32 bytes, or a foreign one behind zero bytes."""
    if _NAME.fullmatch(name):
        return bytes.fromhex(name)
    return _FOREIGN + name[:_LONGEST_FOREIGN].encode("utf-8", "replace")


def to_text(name: bytes) -> str:
    """Return a kept name as its client wrote it."""
    if name.startswith(_FOREIGN):
        return name.removeprefix(_FOREIGN).decode("utf-8", "replace")
    return name.hex()


class Upload(NamedTuple):
    """A file version as a client sends it; `name` is the client's, b"" for none."""

    name: bytes
    path: str
    content: bytes


class FileChunk(NamedTuple):
    """Characters of a client's file that a model was shown; `end` is exclusive.

    They are counted as code points of the file as the client holds it.
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
    """The code that goes into a chat, and what the client should know of its blobs."""

    text: str = ""
    chunks: tuple[FileChunk, ...] = ()
    unknown: tuple[str, ...] = ()
    checkpoint_found: bool = True


class UnknownBlobs(Struct, frozen=True):
    """What of a client's set is not here: names as the client wrote them."""

    names: tuple[str, ...] = ()
    checkpoint_found: bool = True


_NO_BLOBS = BlobNames()


class RetrievalRequest(Struct, frozen=True):
    """What is asked: `length` in characters; of `code`, `commits`, `conversations`.

    With a `symbol` it is asked where this name is defined and used. `roots` are the
    workspaces to search, `folders` those that the client has open (byok's own fields).
    `conversation` is the one in which it is asked, "" if that is unknown.
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
    """The answer, and what the client should know of its blobs."""

    text: str
    unknown: Sequence[bytes] = ()
    checkpoint_found: bool = True
    seconds: float = 0.0


class WorkspaceReport(Struct, frozen=True):
    """How far a workspace is indexed; `percentage` of the files that were to be read.

    `note` says what is wrong, "" if nothing is; `counters` are those of the last walk.
    """

    root: str
    phase: str
    percentage: float
    files_tracked: int
    files_processed: int
    note: str
    counters: Mapping[str, float]


class RemoteStatus(Struct, frozen=True):
    """What a search server that the settings name does; counts since byok started.

    Nothing is asked unless it is `enabled`. `note` says why it is left out for
    `next_try` seconds, "" if it is not.
    """

    url: str
    enabled: bool
    asked: int
    answered: int
    note: str
    next_try: float


class IndexStatus(Struct, frozen=True):
    """The state of the whole index; `waiting` is the number of open tasks.

    `remote` is the search server beside it, None where the settings name none.
    """

    state: str
    error: str
    waiting: int
    mode: SearchMode
    workspaces: Sequence[WorkspaceReport] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    remote: RemoteStatus | None = None


class ExcludingRule(Struct, frozen=True):
    """The one rule that leaves out a path: a line of an ignore file, or byok's own.

    `cure` is what lifts it when it is written into `place`, an ignore file or a
    setting; "" if nothing does.
    """

    pattern: str = ""
    file: str = ""
    line: int = 0
    cure: str = ""
    place: str = ""

    @property
    def words(self) -> str:
        """The line and where it stands, "" where no line is the rule."""
        if self.file:
            return f"{self.pattern} in {self.file}, line {self.line}"
        what = f"{self.pattern}, byok's own rule for what programs write"
        return what if self.pattern else ""

    @property
    def advice(self) -> str:
        """What to do to have the path indexed."""
        cure = f"To index it, add {self.cure} to {self.place}."
        return cure if self.cure else ""


class PathStatus(Struct, frozen=True):
    """Whether a path is indexed; `reason` and `rule` say what leaves it out.

    `advice` says what to do, `cure` is what it writes into a setting or an ignore file.
    Rules go by names, so one may leave out what does not exist.

    `notes` say what does not count of the ignore files above it. `alike` are indexed
    files whose paths end with one that is not there.
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
