"""Types and protocols that the parts of this room share."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # One vector a row, 32-bit floats, each of length 1.
    Vectors: TypeAlias = "NDArray[np.float32]"

# Names what is embedded: sha256(recipe ‖ text). Equal texts are embedded once.
Key: TypeAlias = bytes


class SpaceName(Struct, frozen=True):
    """What must be equal for two vectors to be comparable.

    A model can be replaced behind its name, so a space also keeps the vector of a
    fixed probe text (`Space` in the store); that is compared by cosine.

    Attributes:
        model: the model's name as its upstream lists it, without the upstream.
        dimensions: numbers in a vector.
        recipe: version of how the text of a chunk is made.
        document_prefix: what is put before a text of code.
        query_prefix: what is put before a question.
    """

    model: str
    dimensions: int
    recipe: str
    document_prefix: str = ""
    query_prefix: str = ""


class Embedder(Protocol):
    """Makes vectors with the model that the user chose; adds the model's prefixes.

    All methods raise a ByokError if there is no usable answer, without secrets in its
    text. It splits batches, tries again and waits by itself: after a failure, the next
    call for code begins with a wait (a minute at most, or what the upstream asks for),
    and questions are refused until then.
    """

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """Return a row for each text of code, shape (texts, dimensions).

        Any number of texts; questions overtake this. A row of zeros stands for a text
        that the model refuses for good: store it, so that it is not asked for again.
        """

    async def embed_question(self, text: str) -> "Vectors":
        """Return the vector of a question, shape (dimensions,)."""

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """Return the space that this model makes now, and the probe text's vector.

        That has the shape (dimensions,). Call it again after an error with the code
        "embedding_dimensions": the model was replaced.
        """


class TeamStatus(Struct, frozen=True):
    """What the team's index does now, as the user is told.

    Attributes:
        url: where it is.
        team: the team's name, as in the settings.
        collection: what the server calls the vectors of this model; "" before any.
        note: why local vectors are used instead, one sentence; "" if all is well.
        next_try: seconds until it is asked again; 0 if it may be asked now.
        fetched: vectors taken from the team since this daemon started.
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
    """The model that the settings name, before anything is asked of it.

    Attributes:
        upstream: the upstream's name in the settings.
        host: where texts go, host and port.
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
    """What is done about vectors at the moment."""

    OFF = "off"  # no upstream is named in the settings
    NO_CONSENT = "no_consent"  # the upstream is on another machine, and not confirmed
    PAUSED = "paused"  # by the user; questions use what is there
    STANDBY = "standby"  # the index is not open yet
    FILLING = "filling"
    WAITING = "waiting"  # the upstream refuses or is down; it is asked again later
    COMPLETE = "complete"
    FAILED = "failed"  # the vectors cannot be stored or read; `error` says why


class EmbeddingStatus(Struct, frozen=True):
    """How far the vectors are.

    Attributes:
        state: what is done at the moment.
        upstream: the upstream's name in the settings; "" if off.
        host: where texts go, host and port.
        model: the model's name as its upstream lists it.
        is_local: texts stay on this machine, so that no consent is needed.
        dimensions: numbers in a vector; 0 while unknown.
        chunks: the chunks of the index that are to have a vector.
        embedded: those that have one of the model of the settings.
        refused: those that the model does not take.
        bytes: size of the stored vectors.
        error: the last failure, without secrets; "" if there was none since a success.
        note: what else the user should know, such as of a team's index.
        team: what the team's index does; None if there is none.
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
    """What filling would send; nothing is sent to find this out.

    Attributes:
        upstream: the upstream's name in the settings.
        host: where texts would go, host and port.
        model: the model's name.
        is_local: texts stay on this machine.
        chunks: how many chunks have no vector yet.
        tokens: of their texts, estimated.
        dollars: what these tokens cost; None if the price is unknown.
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
