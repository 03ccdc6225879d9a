"""The context endpoints keep clients calm without an index."""

from typing import Any

import pytest

from byok.augment import blobs

SEEN = [f"{n:064x}" for n in range(3)]


@pytest.mark.parametrize(
    "body",
    [{"mem_object_names": SEEN}, {"blob_names": SEEN}, {"mem_object_names": 5}, {}],
)
def test_nothing_is_ever_missing(body: dict[str, Any]) -> None:
    assert blobs.find_missing(body) == {
        "unknown_memory_names": [],
        "unknown_blob_names": [],
        "nonindexed_blob_names": [],
    }


@pytest.mark.parametrize(
    ("uploaded", "names"),
    [
        pytest.param([{"blob_name": "b"}, {"blob_name": "a"}], ["b", "a"], id="order"),
        pytest.param([{"blob_name": "a"}] * 2, ["a", "a"], id="repeats"),
        pytest.param([{"blobName": "a"}, {"name": "b"}], ["a", "b"], id="spellings"),
        pytest.param([{"path": "x"}, {"blob_name": "a"}], ["", "a"], id="no name"),
        pytest.param([None, {"blob_name": "a"}, 5], ["", "a", ""], id="no objects"),
        pytest.param("x", [], id="no list"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_uploads_are_acknowledged_by_position(uploaded: Any, names: list[str]) -> None:
    assert blobs.batch_upload({"blobs": uploaded}) == {"blob_names": names}


def checkpoint(base: Any = None, added: Any = (), deleted: Any = ()) -> str:
    changes = {"checkpoint_id": base, "added_blobs": added, "deleted_blobs": deleted}
    answer = blobs.checkpoint_blobs({"blobs": changes})
    assert answer.keys() == {"new_checkpoint_id"}
    assert isinstance(answer["new_checkpoint_id"], str)
    return answer["new_checkpoint_id"]


def test_equal_changes_have_equal_checkpoints() -> None:
    assert checkpoint(None, ["a", "b"], ["c"]) == checkpoint(None, ["b", "a"], ["c"])


@pytest.mark.parametrize(
    "other",
    [("ck", ["a"], []), (None, ["b"], []), (None, [], ["a"]), (None, [], [])],
)
def test_other_changes_have_other_checkpoints(other: tuple[Any, Any, Any]) -> None:
    assert checkpoint(*other) != checkpoint(None, ["a"], [])


@pytest.mark.parametrize("body", [{}, {"blobs": None}, {"blobs": [1]}])
def test_a_checkpoint_of_nothing_has_an_id(body: dict[str, Any]) -> None:
    assert blobs.checkpoint_blobs(body)["new_checkpoint_id"].startswith("byok-")


def test_a_name_with_half_an_emoji_does_no_harm() -> None:
    assert checkpoint("\ud83d", ["\ud83d"])


@pytest.mark.parametrize("body", [{}, {"information_request": "Where?"}])
def test_a_search_is_answered_by_a_sentence(body: dict[str, Any]) -> None:
    answer = blobs.codebase_retrieval(body)
    assert answer["formatted_retrieval"].endswith(".")
    assert answer["unknown_blob_names"] == []
    assert answer["checkpoint_not_found"] is False
