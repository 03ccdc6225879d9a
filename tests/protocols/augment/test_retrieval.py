"""`/agents/codebase-retrieval` on the wire."""

from typing import Any

import pytest

from byok.core.code_query import (
    DEFAULT_LENGTH,
    LONGEST,
    BlobNames,
    Retrieval,
    RetrievalRequest,
    to_bytes,
)
from byok.protocols.augment.blobs import decode_retrieval, encode_retrieval

NAME = "0" * 63 + "7"


def test_retrieval_request_is_read_completely() -> None:
    body = {
        "information_request": "Where?",
        "max_output_length": 6000,
        "blobs": {"checkpoint_id": "ck", "added_blobs": [NAME]},
        "dialog": [],
        "disable_codebase_retrieval": True,
        "enable_commit_retrieval": True,
        "enable_conversation_retrieval": True,
        "conversation_id": "c",
    }
    assert decode_retrieval(body) == RetrievalRequest(
        "Where?",
        6000,
        BlobNames("ck", (to_bytes(NAME),)),
        code=False,
        commits=True,
        conversations=True,
        roots=[],
        conversation="c",
    )


@pytest.mark.parametrize(
    "body",
    [
        {},
        {
            "information_request": None,
            "max_output_length": None,
            "blobs": None,
            "dialog": 7,
            "disable_codebase_retrieval": None,
        },
        {
            "information_request": ["x"],
            "max_output_length": "long",
            "blobs": [1],
            "enable_commit_retrieval": "perhaps",
        },
    ],
)
def test_retrieval_request_has_defaults_for_missing_or_unusable_fields(
    body: dict[str, Any],
) -> None:
    assert decode_retrieval(body) == RetrievalRequest("", roots=[])


@pytest.mark.parametrize(
    "body",
    [
        {"query": "Where?"},
        {"informationRequest": "Where?"},
    ],
)
def test_retrieval_question_has_other_field_names(body: dict[str, Any]) -> None:
    assert decode_retrieval(body).query == "Where?"


@pytest.mark.parametrize(
    ("given", "length"),
    [
        (LONGEST, LONGEST),
        (LONGEST + 1, LONGEST),
        (0, DEFAULT_LENGTH),
        ("300", 300),
        (True, DEFAULT_LENGTH),
    ],
)
def test_retrieval_length_is_limited(given: Any, length: int) -> None:
    assert decode_retrieval({"max_output_length": given}).length == length


def test_retrieval_answer_has_its_text_and_the_unknown_blobs() -> None:
    found = Retrieval("Text.", (to_bytes(NAME), to_bytes("theirs")), False, 0.0123)
    assert encode_retrieval(found) == {
        "formatted_retrieval": "Text.",
        "codebase_retrieval_elapsed_ms": 12,
        "unknown_blob_names": [NAME, "theirs"],
        "checkpoint_not_found": True,
    }
