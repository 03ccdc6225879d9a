"""The answer of /v1/embeddings is exactly what was asked for, or it is an error."""

import json
from array import array
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import UpstreamGarbled, UpstreamRefused
from byok.dialects.openai_embeddings import (
    longest_answer,
    read_embeddings,
    write_embeddings_request,
)
from tests.fakes.embedding_server import encode

HALF = "\ud83d"  # of an emoji
A, B = [0.5, -1.0], [3.0, 4.0]


def answer(*items: Any) -> bytes:
    return json.dumps({"object": "list", "data": items}).encode()


def item(index: Any, vector: Any) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": vector}


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({}, {"encoding_format": "base64"}),
        ({"base64": False}, {}),
        ({"dimensions": 256}, {"encoding_format": "base64", "dimensions": 256}),
    ],
    ids=str,
)
def test_request_has_no_field_that_is_not_needed(
    more: dict[str, Any], fields: dict[str, Any]
) -> None:
    body = orjson.loads(write_embeddings_request("m", ["a", "ü"], **more))
    assert body == {"model": "m", "input": ["a", "ü"], **fields}


def test_request_with_half_an_emoji_is_utf_8() -> None:
    raw = write_embeddings_request("m", [f"a{HALF}b", "\ud83d\ude00"])
    assert orjson.loads(raw)["input"] == ["a\ufffdb", "😀"]


@pytest.mark.parametrize("write", [list, encode], ids=["numbers", "base64"])
def test_vectors_are_read_in_the_order_of_the_texts(write: Any) -> None:
    raw = answer(item(1, write(B)), item(0, write(A)))
    assert read_embeddings(raw, 2) == [array("f", A), array("f", B)]


def test_vectors_without_an_index_are_in_order() -> None:
    raw = answer({"embedding": A}, {"embedding": B})
    assert read_embeddings(raw, 2) == [array("f", A), array("f", B)]


NAN = encode([1.0, float("nan")])
WRONG: list[tuple[str, bytes, str]] = [
    ("too few", answer(item(0, A)), "1 vectors for 2 texts"),
    ("too many", answer(*(item(i, A) for i in range(3))), "3 vectors for 2 texts"),
    ("an index twice", answer(item(0, A), item(0, B)), "which vector belongs"),
    ("an index beyond", answer(item(1, A), item(2, B)), "which vector belongs"),
    ("an index as text", answer(item("0", A), item("1", B)), "which vector belongs"),
    ("other dimensions", answer(item(0, A), item(1, [1.0])), "different dimensions"),
    ("no dimensions", answer(item(0, []), item(1, [])), "0 dimensions"),
    ("too many dimensions", answer(item(0, encode([1.0] * 8193)), item(1, A)), "8193"),
    ("a long list", answer(item(0, [1] * 8193), item(1, A)), "no list of numbers"),
    ("zeros", answer(item(0, [0, 0.0]), item(1, A)), "all zeros"),
    ("NaN", answer(item(0, NAN), item(1, A)), "infinite or none"),
    ("beyond 32 bits", answer(item(0, [1e300, 1]), item(1, A)), "infinite or none"),
    ("NaN as a word", b'{"data": [{"embedding": [NaN]}, {}]}', "not JSON"),
    ("null", answer(item(0, [None, 1]), item(1, A)), "no list of numbers"),
    ("words", answer(item(0, ["a", "b"]), item(1, A)), "no list of numbers"),
    ("no base64", answer(item(0, "?"), item(1, A)), "no list of numbers"),
    ("half a number", answer(item(0, "AAA="), item(1, A)), "no list of numbers"),
    ("an object of items", b'{"data": {"0": 1}}', "no list of vectors"),
    ("a list", b"[[1.0, 2.0], [1.0, 2.0]]", "no list of vectors"),
    ("half an answer", answer(item(0, A))[:-4], "not JSON"),
    ("brackets without end", b'{"data": ' + b"[" * 9999, "no list of vectors"),
    ("a flood of objects", answer(*[{}] * 9999), "no list of vectors"),
]


@pytest.mark.case("F47")
@pytest.mark.parametrize(
    ("raw", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_anything_else_is_refused_with_its_reason(raw: bytes, words: str) -> None:
    with pytest.raises(UpstreamGarbled, match=words) as caught:
        read_embeddings(raw, 2)
    assert caught.value.retryable
    assert caught.value.code == "embedding_garbled"


def test_other_dimensions_than_asked_for_are_refused_for_good() -> None:
    with pytest.raises(UpstreamGarbled, match="2 dimensions instead of 3") as caught:
        read_embeddings(answer(item(0, A)), 1, dimensions=3)
    assert not caught.value.retryable
    assert caught.value.code == "embedding_dimensions"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"error": {"message": "The GPU is gone."}}',
        b'{"data": [], "error": {"message": "The GPU is gone."}}',
    ],
    ids=str,
)
def test_an_error_with_status_200_is_an_error(raw: bytes) -> None:
    with pytest.raises(UpstreamRefused, match="The GPU is gone"):
        read_embeddings(raw, 1)


def test_an_answer_in_numbers_fits_into_the_limit() -> None:
    raw = answer(*(item(i, [-1.2345678901234567e-10] * 8192) for i in range(3)))
    assert len(raw.replace(b" ", b"")) <= longest_answer(3)
    assert longest_answer(64) < 2**24


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_an_error_of_ours(raw: bytes) -> None:
    with pytest.raises((UpstreamGarbled, UpstreamRefused)):
        read_embeddings(raw, 1)
