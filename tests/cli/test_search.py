"""byok search, with a daemon and without."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from byok.cli.search import wait_until_searchable
from byok.core.platform.paths import find_paths
from byok.search.index.store.workspaces import permanent_roots
from byok.storage.database import open_unchanged
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread
from tests.fakes.rows import client, space

QUESTION = "where is the oven heated before baking"


def check_answers(cli: Cli) -> None:
    done = cli("search", QUESTION)
    assert done.code == 0
    assert "Path: bakery/oven.py" in done.out
    assert "not-for-anybody" not in done.out
    hits = json.loads(cli("search", QUESTION, "--json", "--limit", "1").out)["hits"]
    assert [hit["path"] for hit in hits] == ["bakery/oven.py"]
    assert {"score", "reasons", "chunks"} <= set(hits[0])
    short = cli("search", QUESTION, "--max-length", "200")
    assert len(short.out) <= 201


def test_in_a_project_without_a_daemon_it_is_indexed_and_searched(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "bakery")
    done = cli("search", *QUESTION.split())
    assert "Path: bakery/oven.py" in done.out
    assert "not-for-anybody" not in done.out
    assert json.loads(cli("index", "status", "--json").out)["workspaces"] == []


@pytest.mark.case("B110")
def test_search_refuses_an_index_folder_of_the_users_files_with_a_hint(
    cli: Cli, project: Path, clean_environment: Path
) -> None:
    thesis = clean_environment / "data" / "index" / "thesis.tex"
    thesis.parent.mkdir(parents=True)
    thesis.write_text("mine")
    done = cli("search", QUESTION, "-w", project)
    assert done.code == 78
    assert "'thesis.tex'" in done.err
    assert "Move it away" in done.err
    assert thesis.read_text() == "mine"


def test_with_a_daemon_the_workspace_around_is_searched(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    with daemon_thread(project):
        check_answers(cli)
        assert cli("search", QUESTION).err == ""
        other = project.parent / "other"
        (other / "sub").mkdir(parents=True)
        (other / ".git").mkdir()
        (other / "sub" / "own.py").write_text("def heat_oven() -> None: ...\n")
        monkeypatch.chdir(other / "sub")
        elsewhere = cli("search", QUESTION)
        everywhere = cli("search", QUESTION, "--all")
    with closing(open_unchanged(find_paths().database)) as db:
        assert permanent_roots(db) == []  # only byok index add is for good
    assert "Path: sub/own.py" in elsewhere.out
    assert "bakery" not in elsewhere.out
    assert f"byok index add {other}" in elsewhere.err
    assert "Path: bakery/bakery/oven.py" in everywhere.out
    assert "Path: other/sub/own.py" in everywhere.out


async def test_where_indexing_failed_the_search_goes_on_and_says_why(
    capsys: pytest.CaptureFixture[str],
) -> None:
    broken = client([space("indexing")], error="The disk is full.")
    assert (await wait_until_searchable(broken, ["/zoo"])).workspaces == ()
    told = " ".join(capsys.readouterr().err.split())
    assert told == (
        "Indexing failed: The disk is full. "
        "The index is incomplete, so ripgrep searches instead."
    )


def test_where_no_project_can_be_the_message_names_what_can_be_searched(
    cli: Cli, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with daemon_thread():
        cli("index", "add", project)
        done = cli("search", QUESTION)
        everywhere = cli("search", QUESTION, "--all")
    assert (done.code, done.out) == (78, "")
    assert "-w DIR" in done.err
    assert "--all" in done.err
    assert "Path: bakery/oven.py" in everywhere.out
    both = cli("search", QUESTION, "--all", "-w", project)
    assert (both.code, both.out) == (2, "")
