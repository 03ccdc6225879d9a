"""Replies of workers: what is read, and what is refused."""

import os
import pickle
from pathlib import Path

import pytest

from byok.search.index.parse.prepare import prepare
from byok.search.index.parse.worker import WorkerReply
from byok.search.index.parse.worker_pool import (
    UnreadableReply,
    read_message,
    read_outcomes,
)
from byok.search.index.types import FileFacts, ParseJob, SkipReason

JOBS = [ParseJob(1, "a.py"), ParseJob(2, "b.py")]
PREPARED = prepare("a.py", b"def lion(): pass\n")
REPLY = WorkerReply(1, PREPARED, None, FileFacts(1, 2, 3, 4), False, 0.1, 0.2)
SKIPPED = WorkerReply(2, None, SkipReason.BINARY, None, False)


def test_the_first_replies_of_a_batch_become_outcomes() -> None:
    message = read_message(pickle.dumps([REPLY, SKIPPED]))
    first, second = read_outcomes(message, JOBS)
    assert (first.job, first.prepared, first.read_seconds) == (JOBS[0], PREPARED, 0.1)
    assert (second.job, second.reason) == (JOBS[1], SkipReason.BINARY)
    assert len(read_outcomes([REPLY], JOBS)) == 1


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        "ready",
        None,
        ["no reply"],
        [SKIPPED],
        [REPLY, SKIPPED, SKIPPED],
        [REPLY._replace(prepared="no file")],  # type: ignore[arg-type]
    ],
)
def test_worker_reply_that_does_not_answer_the_batch_is_refused(
    message: object,
) -> None:
    with pytest.raises(UnreadableReply):
        read_outcomes(message, JOBS)


class _Call:
    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self._marker),)


@pytest.mark.case("B112")
def test_worker_reply_with_other_classes_or_damage_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / "was-here"
    whole = pickle.dumps([REPLY])
    for received in (pickle.dumps(_Call(marker)), whole[:-9], b"", b"\x80\x04junk"):
        with pytest.raises(UnreadableReply):
            read_message(received)
    assert not marker.exists()
