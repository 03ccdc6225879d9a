"""POST /v1/embeddings: the request, and its answer read strictly.

Vectors are asked for in base64: a batch is a quarter of the size then, and is read in a
fifth of the time. Servers that do not know it answer with lists of numbers.

One wrong vector would be stored and would spoil searches until somebody notices, so an
answer that is not exactly what was asked for is no answer.
"""

import binascii
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any, TypeAlias

from byok.core.chat import Json
from byok.core.errors import UpstreamGarbled
from byok.core.wire.json_body import join_surrogates, parse_json, write_json
from byok.dialects.error_bodies import refusal_of

# Vectors as they come: 32-bit floats, of any length above 0.
Floats: TypeAlias = "array[float]"

MOST_DIMENSIONS = 8192
_NUMBER_BYTES = 24  # of a number in a list, with its comma
_MOST_OPENERS = 16  # brackets for each text; two are usual
_SPARE = 4096


def write_embeddings_request(
    model: str, texts: Sequence[str], *, dimensions: int = 0, base64: bool = True
) -> bytes:
    """Return the body of a request; `dimensions` 0 leaves them to the model.

    Lone surrogates, which UTF-8 cannot write, become U+FFFD.
    """
    body: dict[str, Any] = {"model": model, "input": [*map(join_surrogates, texts)]}
    if base64:
        body["encoding_format"] = "base64"
    if dimensions:
        body["dimensions"] = dimensions
    return write_json(body)


def longest_answer(count: int) -> int:
    """Return how many bytes an answer for this many texts may have."""
    return 16 * _SPARE + count * MOST_DIMENSIONS * _NUMBER_BYTES


def read_embeddings(raw: bytes, count: int, *, dimensions: int = 0) -> list[Floats]:
    """Return one vector for each of `count` texts, in their order, all of one size.

    Raises:
        UpstreamRefused: the answer is an error, although its status was 200.
        UpstreamGarbled: it is anything but `count` usable vectors.
    """
    openers = raw.count(b"{") + raw.count(b"[")
    if openers > _SPARE + count * _MOST_OPENERS:  # they would fill the memory
        raise _unusable("the answer is no list of vectors")
    items = _by_index(_items(raw), count)
    vectors = [_vector(item.get("embedding")) for item in items]
    sizes = {len(vector) for vector in vectors}
    if len(sizes) != 1:
        raise _unusable("the vectors of one answer have different dimensions")
    [size] = sizes
    if dimensions and size != dimensions:
        raise UpstreamGarbled(
            f"its vectors have {size} dimensions instead of {dimensions}.",
            code="embedding_dimensions",
            hint="Leave embeddings.dimensions out, unless the model can shorten its "
            "vectors.",
        )
    return vectors


def _items(raw: bytes) -> list[Any]:
    try:
        body = parse_json(raw)
    except (ValueError, RecursionError) as error:
        raise _unusable("the answer is not JSON") from error
    if not isinstance(body, dict):
        raise _unusable("the answer is no list of vectors")
    if body.get("error") or "data" not in body:
        raise refusal_of(body)
    items = body["data"]
    if not isinstance(items, list):
        raise _unusable("the answer is no list of vectors")
    return items


def _by_index(items: list[Any], count: int) -> list[Json]:
    """Return the items in the order of the texts."""
    if len(items) != count:
        raise _unusable(f"it gave {len(items)} vectors for {count} texts")
    if not all(isinstance(item, dict) for item in items):
        raise _unusable("the answer is no list of vectors")
    places = [item.get("index") for item in items]
    if places == [None] * count:
        return items
    ordered: list[Json | None] = [None] * count
    for place, item in zip(places, items, strict=True):
        if type(place) is not int or not 0 <= place < count or ordered[place]:
            raise _unusable("it does not tell which vector belongs to which text")
        ordered[place] = item
    return [item for item in ordered if item is not None]


def _vector(given: Any) -> Floats:
    vector = _floats(given)
    if not 0 < len(vector) <= MOST_DIMENSIONS:
        raise _unusable(f"a vector has {len(vector)} dimensions")
    # One number that is none makes the sum none; 32-bit floats cannot overflow it.
    if not math.isfinite(sum(vector)):
        raise _unusable("a vector has numbers that are infinite or none")
    if not any(vector):
        raise _unusable("a vector is all zeros")
    return vector


def _floats(given: Any) -> Floats:
    vector: Floats = array("f")
    try:
        if isinstance(given, str):
            vector.frombytes(binascii.a2b_base64(given, strict_mode=True))
            if sys.byteorder == "big":
                vector.byteswap()
        elif isinstance(given, list) and len(given) <= MOST_DIMENSIONS:
            vector.extend(given)
        else:
            raise TypeError
    except (TypeError, ValueError, OverflowError) as error:
        raise _unusable("a vector is no list of numbers") from error
    return vector


def _unusable(what: str) -> UpstreamGarbled:
    return UpstreamGarbled(
        f"it gave no usable vectors: {what}.",
        code="embedding_garbled",
        hint="Is this an embedding model?",
        retryable=True,
    )
