"""Types and protocols that the modules of the vectors share."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # One vector a row, 32-bit floats, each of length 1.
    Vectors: TypeAlias = "NDArray[np.float32]"

# The name of an embedded text: sha256(recipe ‖ text). Equal texts are embedded once.
Key: TypeAlias = bytes


class SpaceName(Struct, frozen=True):
    """The attributes that two comparable vectors have in common.

    A model can be replaced behind its name, so a space also stores the vector of a
    fixed probe text (`Space` in the store), which is compared by cosine.

    Attributes:
        model: the model's name as its upstream lists it, without the upstream.
        dimensions: numbers in a vector.
        recipe: version of the rules that make the text of a chunk.
        document_prefix: text before each text of code.
        query_prefix: text before each question.
    """

    model: str
    dimensions: int
    recipe: str
    document_prefix: str = ""
    query_prefix: str = ""


class Embedder(Protocol):
    """Makes vectors with the model that the user chose; adds the model's prefixes.

    All methods raise a ByokError if there is no usable answer, without secrets in its
    text. Batches are split, retried and delayed by the embedder itself: after a failure
    the next call for code first waits (a minute at most, or as long as the upstream
    asks for), and questions are refused until then.
    """

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """Return a row for each text of code, shape (texts, dimensions).

        There may be any number of texts; questions overtake them. A row of zeros stands
        for a text that the model finally refuses: store it, so that the text is not
        sent again.
        """

    async def embed_question(self, text: str) -> "Vectors":
        """Return the vector of a question, shape (dimensions,)."""

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """Return the space of the present model, and the vector of the probe text.

        The vector has the shape (dimensions,). Call this again after an error with the
        code "embedding_dimensions": the model was replaced.
        """


class TeamStatus(Struct, frozen=True):
    """The state of the team's index, as shown to the user.

    Attributes:
        url: address of the server.
        team: the team's name, as in the settings.
        collection: the server's name for the vectors of this model; "" before any.
        note: why local vectors are used instead, one sentence; "" if all is well.
        next_try: seconds until the next request; 0 if one may be sent now.
        fetched: vectors received from the team since this daemon started.
        pushed: vectors given to the team since this daemon started.
        writes: whether this member gives vectors to the team.
        searches: whether vectors of questions may be sent there.
    """

    url: str
    team: str
    collection: str = ""
    note: str = ""
    next_try: float = 0
    fetched: int = 0
    pushed: int = 0
    writes: bool = False
    searches: bool = False


class EmbeddingTarget(Struct, frozen=True):
    """The model that the settings name.

    Attributes:
        upstream: the upstream's name in the settings.
        host: host and port to which texts are sent.
        model: the model's name as its upstream lists it.
        is_local: the host is this machine, so that no consent is needed.
        price: dollars per million tokens; None if that is unknown.
    """

    upstream: str
    host: str
    model: str
    is_local: bool
    price: float | None = None


class EmbeddingState(StrEnum):
    """The current work on vectors."""

    OFF = "off"  # no upstream is named in the settings
    NO_CONSENT = "no_consent"  # the upstream is on another machine, and not confirmed
    PAUSED = "paused"  # by the user; questions use the existing vectors
    STANDBY = "standby"  # the index is not open yet
    FILLING = "filling"
    WAITING = "waiting"  # the upstream refuses or is down; byok retries later
    COMPLETE = "complete"
    FAILED = "failed"  # the vectors cannot be stored or read; `error` says why


class EmbeddingStatus(Struct, frozen=True):
    """The progress of the vectors.

    Attributes:
        state: the current work.
        upstream: the upstream's name in the settings; "" if off.
        host: host and port to which texts are sent.
        model: the model's name as its upstream lists it.
        is_local: texts stay on this machine, so that no consent is needed.
        dimensions: numbers in a vector; 0 while unknown.
        chunks: chunks of the index that need a vector.
        embedded: chunks that have a vector of the current model.
        refused: chunks that the model does not accept.
        bytes: size of the stored vectors.
        error: the last failure, without secrets; "" if there was none since a success.
        note: further information for the user, such as on a team's index.
        team: state of the team's index; None without a team.
    """

    state: EmbeddingState
    upstream: str = ""
    host: str = ""
    model: str = ""
    is_local: bool = False
    dimensions: int = 0
    chunks: int = 0
    embedded: int = 0
    refused: int = 0
    bytes: int = 0
    error: str = ""
    note: str = ""
    team: TeamStatus | None = None


class EmbeddingEstimate(Struct, frozen=True):
    """An estimate of what filling would send, made without sending anything.

    Attributes:
        upstream: the upstream's name in the settings.
        host: host and port to which texts would be sent.
        model: the model's name.
        is_local: texts stay on this machine.
        chunks: number of chunks without a vector.
        tokens: estimated tokens of their texts.
        dollars: price of these tokens; None if it is unknown.
        confirmed: the user has already confirmed this host and model, or need not.
    """

    upstream: str
    host: str
    model: str
    is_local: bool
    chunks: int
    tokens: int
    dollars: float | None
    confirmed: bool
