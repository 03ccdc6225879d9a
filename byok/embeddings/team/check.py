"""Checks vectors that strangers sent, before they are kept or compared.

The client library passes vectors on as they came, so that a vector may be any JSON.
Whoever can write to the server chooses the direction of a vector, and with it the order
of an answer. Checked vectors can do no more than that.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from byok.embeddings.numeric import np

if TYPE_CHECKING:
    from byok.embeddings.types import Vectors

_SHORTEST, _LONGEST = 0.9, 1.1  # the server keeps vectors at length 1, rounded
SAME_MODEL = 0.999  # the least cosine of two vectors of the probe text


def check_vector(received: Any, dimensions: int) -> "Vectors | None":
    """Return a received vector as a row of length 1, or None if it cannot be one."""
    if not isinstance(received, list) or len(received) != dimensions:
        return None
    if not {*map(type, received)} <= {float, int}:
        return None
    try:
        vector = np.array(received, dtype=np.float64)
    except OverflowError:  # an integer with hundreds of digits
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.linalg.norm(vector))
    if not _SHORTEST <= length <= _LONGEST:
        return None
    return (vector / length).astype(np.float32)


def cosine(one: "Vectors", other: "Vectors") -> float:
    """Return the cosine of two vectors of length 1, each one row or flat."""
    return float(np.dot(one.ravel(), other.ravel()))


def check_score(received: Any) -> float | None:
    """Return a received cosine within -1 and 1, or None if it is no number."""
    if not isinstance(received, float | int) or received != received:
        return None
    return float(min(1.0, max(-1.0, received)))


def to_numbers(vectors: "Vectors") -> list[list[float]]:
    """Return rows as lists for JSON; the server keeps fewer digits than six."""
    rounded: Iterable[list[float]] = vectors.astype(np.float64).round(6).tolist()
    return [*rounded]
