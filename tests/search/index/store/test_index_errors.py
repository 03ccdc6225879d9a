"""What the errors of the lexical index say."""

import sqlite3

import pytest

from byok.core.errors import DiskFull, IndexFailed, IndexInUse, NotReady
from byok.search.index.store.chunk_index import explain_failure, translate_errors


def test_index_error_is_short_and_says_what_to_do() -> None:
    with pytest.raises(IndexFailed, match="no room") as caught, translate_errors():
        raise ValueError("no room" + "x" * 1000)
    assert len(str(caught.value)) < 250
    assert "index rebuild" in caught.value.hint


@pytest.mark.parametrize("number", [28, 112])
def test_index_error_of_a_full_disk_says_so(number: int) -> None:
    with pytest.raises(DiskFull) as caught, translate_errors():
        raise ValueError(f"An IO error occurred: 'No space (os error {number})'")
    assert (caught.value.status, caught.value.code) == (507, "storage_full")
    with pytest.raises(IndexFailed) as other, translate_errors():
        raise ValueError("An IO error occurred: 'Input/output error (os error 5)'")
    assert other.value.status == 503


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "The disk is full"),
        (sqlite3.OperationalError("database or disk is full"), "The disk is full"),
        (sqlite3.OperationalError("disk I/O error"), "The index cannot be used: disk"),
        (RuntimeError("no process"), "The index cannot be used: no process."),
        (NotReady("Wait.", hint="A minute."), "Wait. A minute."),
    ],
    ids=str,
)
def test_explanation_of_a_failure_names_no_class(error: Exception, told: str) -> None:
    said = explain_failure(error).sentence
    assert said.startswith(told)
    assert type(error).__name__ not in said


def test_an_index_in_use_names_the_daemon_as_the_way_out() -> None:
    with pytest.raises(IndexInUse) as caught, translate_errors():
        raise ValueError("LockBusy")
    assert "byok serve" in caught.value.hint


def test_what_is_no_error_of_the_index_passes() -> None:
    with pytest.raises(KeyError), translate_errors():
        raise KeyError("x")
