"""Blobs on the wire: names, uploads, sets, and answers for clients of all ages."""

from typing import Any

import pytest

from byok.core.code_query import (
    DEFAULT_LENGTH,
    MAX_LENGTH,
    BlobNames,
    Retrieval,
    RetrievalRequest,
    to_bytes,
    to_text,
)
from byok.core.errors import BadRequest
from byok.protocols.augment import blobs
from byok.protocols.augment.blobs import SentBlob, decode_retrieval, encode_retrieval

NAMES = [f"{n:064x}" for n in range(3)]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"mem_object_names": NAMES}, NAMES),
        ({"blob_names": NAMES}, NAMES),
        ({"mem_object_names": NAMES[:2], "blob_names": NAMES[1:]}, NAMES),
        ({"blob_names": [NAMES[0]] * 3}, NAMES[:1]),
        ({"blob_names": [5, None, {}, NAMES[0]]}, NAMES[:1]),
        ({"blob_names": "x"}, []),
    ],
)
@pytest.mark.case("B91")
def test_find_missing_reads_blob_names_in_either_field(
    body: dict[str, Any], names: list[str]
) -> None:
    assert blobs.requested_names(body) == names


@pytest.mark.case("B91")
def test_find_missing_looks_up_at_most_2000_blob_names() -> None:
    most = [f"{n:064x}" for n in range(2000)]
    assert blobs.requested_names({"blob_names": most}) == most
    assert blobs.requested_names({"blob_names": most * 2}) == most
    with pytest.raises(BadRequest) as refused:
        blobs.requested_names({"blob_names": [*most, "one more"]})
    assert (refused.value.status, refused.value.code) == (422, "too_many_names")


@pytest.mark.slow
@pytest.mark.case("B113")
def test_checkpoint_takes_as_many_blob_names_as_a_workspace_may_have_files() -> None:
    most = [f"{number:064x}" for number in range(blobs.MAX_CHECKPOINTED - 1)]
    body = {"blobs": {"added_blobs": most, "deleted_blobs": ["0" * 64]}}
    assert len(blobs.checkpoint_names(body).added) == len(most)
    body["blobs"]["deleted_blobs"].append("1" * 64)
    with pytest.raises(BadRequest) as refused:
        blobs.checkpoint_names(body)
    assert (refused.value.status, refused.value.code) == (422, "too_many_names")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(
            {"blob_name": NAMES[1], "path": "a", "content": "é"},
            SentBlob(NAMES[1], bytes.fromhex(NAMES[1]), "a", "é".encode()),
            id="whole",
        ),
        pytest.param(
            {"blobName": NAMES[1], "relativePath": "a", "content": ""},
            SentBlob(NAMES[1], bytes.fromhex(NAMES[1]), "a", b""),
            id="other spellings, empty",
        ),
        pytest.param(
            {"path": "a", "content": "\ud83d"},
            SentBlob("", b"", "a", b"?"),
            id="half an emoji",
        ),
        pytest.param(None, SentBlob("", b"", "", b""), id="null"),
    ],
)
def test_batch_upload_is_read_tolerantly(sent: Any, expected: SentBlob) -> None:
    assert blobs.decode_uploads({"blobs": [sent]}) == [expected]


def test_batch_upload_takes_at_most_1000_blobs() -> None:
    assert len(blobs.decode_uploads({"blobs": [{}] * 1000})) == 1000
    with pytest.raises(BadRequest) as refused:
        blobs.decode_uploads({"blobs": [{}] * 1001})
    assert refused.value.status == 422


def test_batch_upload_acknowledges_by_position_and_by_the_clients_name() -> None:
    sent = blobs.decode_uploads(
        {"blobs": [{"blob_name": "mine"}, {"path": "a", "content": "x"}, None]}
    )
    reply = blobs.upload_reply(sent, ["x", NAMES[1], ""])
    assert reply == {"blob_names": ["mine", NAMES[1], ""]}


def test_blob_set_is_a_checkpoint_and_its_changes() -> None:
    body = {
        "blobs": {
            "checkpoint_id": "ck",
            "added_blobs": [NAMES[0], NAMES[0], 5],
            "deletedBlobs": [NAMES[1]],
        }
    }
    found = blobs.blob_names(body)
    assert found == BlobNames(
        "ck", (bytes.fromhex(NAMES[0]),), (bytes.fromhex(NAMES[1]),)
    )
    assert not found.is_empty


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"blobs": [1]},
        {"blobs": {"checkpoint_id": [], "added_blobs": "x", "deleted_blobs": 5}},
    ],
)
def test_blob_set_of_a_client_without_blobs_is_none(body: dict[str, Any]) -> None:
    assert blobs.blob_names(body) == BlobNames()
    assert blobs.blob_names(body).is_empty


def test_checkpoint_with_an_unknown_base_is_not_found() -> None:
    with pytest.raises(BadRequest) as refused:
        blobs.checkpoint_reply(None)
    assert (refused.value.status, refused.value.code) == (404, "checkpoint_not_found")
    assert refused.value.hint


def test_attached_blob_names_come_from_either_field_each_once() -> None:
    body = {"user_guided_blobs": [NAMES[0], "odd", ""], "userSpecifiedFiles": NAMES[:2]}
    found = [to_text(name) for name in blobs.attached_names(body)]
    assert found == [NAMES[0], "odd", NAMES[1]]


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
        (MAX_LENGTH, MAX_LENGTH),
        (MAX_LENGTH + 1, MAX_LENGTH),
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
