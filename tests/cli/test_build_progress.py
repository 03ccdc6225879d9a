"""Waiting for the index."""

import sys
from typing import cast

import pytest

from byok.cli.build_progress import describe, is_settled, until_built, until_rebuilt
from byok.cli.daemon_client.client import LocalClient
from byok.core.chat import Json
from byok.core.errors import IndexFailed
from byok.core.routing import Service
from tests.fakes.build_states import Client, client, space


async def test_build_progress_waits_until_the_named_folders_are_complete() -> None:
    other = space("indexing", "/other")
    asks = client(
        [space("scanning"), other],
        [space("indexing"), other],
        [space("complete"), other],
    )
    built = await until_built(asks, {"/w"})
    assert [w["phase"] for w in built.workspaces] == ["complete"]
    assert cast(Client, asks).asked == 3


async def test_build_progress_without_names_waits_for_all() -> None:
    other = space("complete", "/other")
    asks = client(
        [space("complete"), space("indexing", "/o")], [space("complete"), other]
    )
    assert len((await until_built(asks)).workspaces) == 2


async def test_build_progress_of_an_index_that_cannot_be_written_is_an_error() -> None:
    with pytest.raises(IndexFailed, match="disk full"):
        await until_built(client([space("indexing")], error="disk full"))


@pytest.mark.parametrize(
    ("phase", "note", "settled"),
    [
        ("scanning", "", False),
        ("indexing", "", False),
        ("indexing", "it is watched by polling", False),
        ("complete", "", True),
        ("workspace-too-large", "", True),
        ("scanning", "could not be synchronised: no such folder", True),
    ],
)
def test_build_progress_ends_where_waiting_is_of_no_more_use(
    phase: str, note: str, settled: bool
) -> None:
    assert is_settled(space(phase, note=note)) is settled


def test_build_progress_describes_what_is_left_out() -> None:
    counters = {"ignored": 12, "secret": 1, "too_large": 0, "walk_seconds": 0.5}
    told = describe(space("complete", counters=counters))
    assert told == ("/w: 1,234 files indexed; excluded: 12 ignored, 1 private")
    assert describe(space("complete")) == "/w: 1,234 files indexed"


def test_build_progress_of_a_workspace_that_is_too_large_says_what_to_do() -> None:
    note = "more than 10 files: ripgrep answers instead"
    told = describe(space("workspace-too-large", note=note))
    assert "ripgrep answers instead" in told
    assert "context.max_files" in told


async def test_build_progress_in_a_pipe_has_no_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await until_built(client([space("indexing")], [space("complete")]))
    assert capsys.readouterr() == ("", "")


async def test_build_progress_in_a_terminal_is_a_bar_with_files_and_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    await until_built(client([space("indexing")], [], [space("complete")]))
    out, err = capsys.readouterr()
    assert out == ""
    assert "617 of 1,234 files" in err
    assert "/s" in err


def test_build_progress_has_a_plural() -> None:
    assert describe(space("complete", files_tracked=1)) == "/w: 1 file indexed"


async def test_build_progress_of_a_complete_index_shows_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    await until_built(client([space("complete")]))
    assert capsys.readouterr().err == ""


async def test_build_progress_waits_for_a_rebuild() -> None:
    waiting = [3, 1, 0]

    class Rebuilding(Client):
        async def ask(self, service: Service, body: Json) -> Json:
            return {**await super().ask(service, body), "waiting": waiting.pop(0)}

    asks = Rebuilding([[space("complete")]])
    await until_rebuilt(cast(LocalClient, asks), 4)
    assert waiting == []
    with pytest.raises(IndexFailed, match="disk is full"):
        await until_rebuilt(client([], error="The disk is full."), 4)
