"""The index, its workspaces and the watches."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from byok.daemon.token import read_token
from byok.doctor.code_index import (
    check_index,
    check_watches,
    check_workspace,
    workspaces,
)
from byok.doctor.results import CheckState
from byok.doctor.surroundings import Machine
from byok.index.store.store import Store
from byok.platform.paths import find_paths, make_private
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows


def make_index(root: Path, folders: int = 1) -> None:
    """Write an index with a declared folder, which has some files and folders."""
    paths = find_paths()
    make_private(paths.data_dir)
    store = Store(paths.database, paths.index)
    with store.database.writing() as db:
        db.execute(
            "INSERT INTO workspace(id, root, kept) VALUES(1, ?, 1)", (str(root),)
        )
        db.executemany(
            "INSERT INTO file VALUES(1, ?, 1, 1, 1, 1, NULL, NULL)",
            [(f"{n}/a.py",) for n in range(folders)],
        )
    store.close()


def space(root: Path, **fields: Any) -> dict[str, Any]:
    return {"root": str(root), "phase": "complete", "note": "", **fields}


async def test_nothing_indexed_is_well() -> None:
    async with surroundings() as around:
        result = await check_index(around, "")
        assert await workspaces(around) == []
    assert (result.state, "index add" in result.found) == (CheckState.OK, True)


async def test_an_index_is_whole_without_a_daemon(tmp_path: Path) -> None:
    make_index(tmp_path)
    async with surroundings() as around:
        assert (await check_index(around, "")).state is CheckState.OK
        assert await workspaces(around) == [str(tmp_path)]
        result = await check_workspace(around, str(tmp_path))
    assert (result.state, result.found) == (CheckState.OK, "1 files indexed")


async def test_a_damaged_lexical_index_is_a_warning(tmp_path: Path) -> None:
    make_index(tmp_path)
    (find_paths().index / "meta.json").write_text("{}")
    async with surroundings() as around:
        result = await check_index(around, "")
    assert result.state is CheckState.WARNING
    assert "meta.json is damaged" in result.found


async def test_an_index_folder_of_somebody_else_is_named(tmp_path: Path) -> None:
    make_index(tmp_path)
    index = find_paths().index
    shutil.rmtree(index)
    index.mkdir()
    (index / "thesis.txt").write_text("mine")
    async with surroundings() as around:
        result = await check_index(around, "")
    assert result.state is CheckState.FAILURE
    assert "not byok's" in result.found


async def test_an_error_of_the_running_index_is_named() -> None:
    status = {"state": "error", "error": "it broke", "workspaces": [], "totals": {}}
    async with daemon_rows({"/byok/index/status": status}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_index(around, "")
    assert (result.state, result.found) == (CheckState.FAILURE, "it broke")


@pytest.mark.parametrize(
    ("fields", "state", "said"),
    [
        ({}, CheckState.OK, "3 files indexed"),
        ({"phase": "indexing", "percentage": 40.0}, CheckState.OK, "40 %"),
        (
            {"phase": "workspace-too-large", "note": "more than 9 files"},
            CheckState.WARNING,
            "more than 9 files",
        ),
        ({"note": "changes are looked for"}, CheckState.WARNING, "looked for"),
    ],
    ids=str,
)
async def test_what_the_daemon_tells_of_a_workspace(
    tmp_path: Path, fields: dict[str, Any], state: CheckState, said: str
) -> None:
    make_index(tmp_path, 3)
    status = {
        "state": "indexed",
        "error": "",
        "workspaces": [space(tmp_path, **fields)],
    }
    async with daemon_rows({"/byok/index/status": status}):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            assert await workspaces(around) == [str(tmp_path)]
            result = await check_workspace(around, str(tmp_path))
    assert result.state is state
    assert said in result.found


async def test_a_folder_that_is_gone_or_not_indexed_is_named(tmp_path: Path) -> None:
    write_settings("[context]", f'workspaces = ["{tmp_path / "gone"}", "{tmp_path}"]')
    async with surroundings() as around:
        gone, new = [
            await check_workspace(around, root) for root in await workspaces(around)
        ]
    assert {gone.state, new.state} == {CheckState.WARNING}
    assert str(tmp_path / "gone") in gone.found
    assert new.cure.startswith("byok serve")


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
@pytest.mark.parametrize(
    ("most", "state"), [(1000, CheckState.OK), (300, CheckState.WARNING)]
)
async def test_too_few_watches_are_named_with_their_setting(
    tmp_path: Path, most: int, state: CheckState
) -> None:
    make_index(tmp_path, 299)
    limit = tmp_path / "proc" / "sys" / "fs" / "inotify" / "max_user_watches"
    limit.parent.mkdir(parents=True)
    limit.write_text(f"{most}\n")
    async with surroundings(Machine(proc=tmp_path / "proc")) as around:
        result = await check_watches(around, "")
    assert result.state is state
    assert "300 folders" in result.found
    cure = "sudo sysctl fs.inotify.max_user_watches=524288"
    assert result.cure == (cure if state is CheckState.WARNING else "")


async def test_other_systems_need_no_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    async with surroundings() as around:
        assert (await check_watches(around, "")).state is CheckState.OK


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
async def test_a_system_without_such_a_limit_is_not_checked(tmp_path: Path) -> None:
    async with surroundings(Machine(proc=tmp_path)) as around:
        assert (await check_watches(around, "")).state is CheckState.NOT_CHECKED
