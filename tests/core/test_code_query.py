"""Questions about code: names of blobs as they are kept, and how code is searched."""

from dataclasses import asdict

import pytest

from byok.core.code_query import (
    BlobNames,
    IndexStatus,
    SearchMode,
    WorkspaceReport,
    to_bytes,
    to_text,
)

NAMES = [f"{n:064x}" for n in range(3)]
EMOJI_HALF = "\ud83d"


@pytest.mark.parametrize("name", NAMES)
def test_blob_name_is_kept_as_32_bytes(name: str) -> None:
    assert to_bytes(name) == bytes.fromhex(name)
    assert to_text(to_bytes(name)) == name


@pytest.mark.case("B63")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a" * 63, id="63"),
        pytest.param("a" * 65, id="65"),
        pytest.param("A" * 64, id="upper case"),
        pytest.param("../../etc/passwd", id="dots"),
        pytest.param("a/b", id="slash"),
        pytest.param("a\0b", id="NUL"),
        pytest.param("a" * 64 + "\n", id="newline"),
        pytest.param("٣" * 64, id="other digits"),
        pytest.param("", id="empty"),
        pytest.param("x" * 31, id="as long as a hash with a byte before"),
        pytest.param("x" * 32, id="as long as a hash"),
    ],
)
def test_blob_name_in_a_foreign_form_is_kept_apart_and_returned(name: str) -> None:
    kept = to_bytes(name)
    assert len(kept) != 32
    assert to_text(kept) == name


def test_blob_name_in_a_foreign_form_may_be_odd_and_long() -> None:
    assert to_text(to_bytes(EMOJI_HALF)) == "?"
    assert len(to_bytes("x" * 10_000)) < 1000


def test_search_modes_are_the_words_of_the_settings() -> None:
    assert [mode.value for mode in SearchMode] == ["auto", "index", "ripgrep"]


def test_blob_set_without_names_is_empty() -> None:
    assert BlobNames(deleted=(bytes(32),)).is_empty
    assert not BlobNames("checkpoint").is_empty


def test_index_status_can_be_written_as_json() -> None:
    space = WorkspaceReport("/zoo", "complete", 100.0, 1, 1, "", {"accepted": 1})
    status = IndexStatus("indexed", "", 0, SearchMode.AUTO, [space])
    assert asdict(status) == {
        "state": "indexed",
        "error": "",
        "waiting": 0,
        "mode": "auto",
        "workspaces": [
            {
                "root": "/zoo",
                "phase": "complete",
                "percentage": 100.0,
                "files_tracked": 1,
                "files_processed": 1,
                "note": "",
                "counters": {"accepted": 1},
            }
        ],
        "totals": {},
    }
