"""The status of a workspace: phases, shares, and what users are told."""

from pathlib import Path

import pytest

from byok.search.index.types import Phase
from byok.search.index.workspace.workspace import WorkspaceStatus


@pytest.fixture
def status() -> WorkspaceStatus:
    return WorkspaceStatus(Path("/project"))


def test_workspace_status_percentage_is_the_share_that_was_indexed(
    status: WorkspaceStatus,
) -> None:
    assert (status.phase, status.percentage) == (Phase.SCANNING, 0.0)
    status.add_queued(4)
    status.begin_indexing()
    assert (status.phase, status.percentage, status.done) == (Phase.INDEXING, 0.0, 0)
    for _ in range(3):
        status.finish_one()
    assert (status.percentage, status.done) == (75.0, 3)
    status.complete()
    assert (status.phase, status.percentage, status.done) == (Phase.COMPLETE, 100.0, 4)


def test_workspace_status_stays_complete_during_another_scan(
    status: WorkspaceStatus,
) -> None:
    status.complete()
    assert status.percentage == 100.0  # nothing was queued
    status.begin_scan()
    assert (status.phase, status.percentage) == (Phase.SCANNING, 100.0)


def test_workspace_status_counts_anew_when_nothing_waited(
    status: WorkspaceStatus,
) -> None:
    status.add_queued(4)
    status.complete()
    status.add_queued(2)
    status.add_queued(1)
    assert (status.queued, status.waiting) == (3, 3)
    status.set_waiting(1)
    status.finish_one()
    status.finish_one()  # it was counted out before
    assert status.waiting == 0


def test_workspace_status_note_says_everything_that_is_wrong(
    status: WorkspaceStatus,
) -> None:
    assert status.note == ""
    status.lose_folder()
    status.report_watching("it is not watched")
    assert "its folder is gone" in status.note
    assert "it is not watched" in status.note
    assert (status.phase, status.percentage) == (Phase.GONE, 0.0)
    status.clear_trouble()
    assert status.note == "it is not watched"
    status.report_watching("")
    status.report_failure(OSError("no"))
    assert status.note == "could not be synchronised: no"


def test_workspace_status_of_a_workspace_that_is_too_large(
    status: WorkspaceStatus,
) -> None:
    status.complete()
    status.give_up(1000)
    assert not status.was_complete
    assert (status.phase, status.note) == (
        Phase.TOO_LARGE, "more than 1,000 files: ripgrep answers instead",
    )  # fmt: skip
