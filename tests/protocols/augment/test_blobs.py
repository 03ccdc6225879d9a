"""Blobs on the wire: names, uploads, sets, and answers for clients of all ages."""

from typing import Any

import pytest

from byok.core.code_query import BlobNames, to_text
from byok.core.errors import BadRequest
from byok.protocols.augment import blobs
from byok.protocols.augment.blobs import SentBlob

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
