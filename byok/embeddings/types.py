"""Types and protocols that the parts of this room share."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # One vector a row, 32-bit floats, each of length 1.
    Vectors: TypeAlias = "NDArray[np.float32]"

# Names what is embedded: sha256(recipe ‖ text). Equal texts are embedded once.
Key: TypeAlias = bytes


@dataclass(frozen=True, slots=True)
class SpaceName:
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

    All methods raise a ByokError if there is no usable answer. `refused` texts are a
    matter of the embedder: it splits batches, waits and tries again by itself.
    """

    @property
    def host(self) -> str:
        """Where texts go, as the user is told: host and port."""

    @property
    def model(self) -> str:
        """The model's name as its upstream lists it."""

    async def embed_documents(self, texts: Sequence[str]) -> "Vectors":
        """Return a vector for each text of code; questions overtake this."""

    async def embed_question(self, text: str) -> "Vectors":
        """Return the vector of a question, as a single row."""

    async def probe(self) -> tuple[SpaceName, "Vectors"]:
        """Return the space that this model makes now, and the probe text's vector."""
