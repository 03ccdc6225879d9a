"""The index and its workspaces, with and without a daemon."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from byok.cli.checks.base import CheckState
from byok.cli.checks.daemon_checks import (
    check_index,
    check_workspace,
    find_damage,
    workspaces,
)
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths, make_private
from byok.search.index.store.schema import INDEX
from byok.search.index.store.store import Store
from tests.fakes.doctors import judged, run_check, surroundings, write_settings
from tests.fakes.rows import daemon_rows

ROOT = "/w/bakery"

ROWS = [
    ("a.py", None),
    ("src/b.py", None),
    ("src/deep/er/c.py", None),
    ("src/x.bin", "binary"),
    ("big.txt", "too-large"),
    ("logs/more.bin", "binary"),
]


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


async def test_an_index_is_whole_without_a_daemon(tmp_path: Path) -> None:
    make_index(tmp_path)
    async with surroundings() as around:
        assert (await check_index(around)).state is CheckState.OK
        assert await workspaces(around) == [str(tmp_path)]
        result = await check_workspace(around, str(tmp_path))
    assert (result.state, result.found) == (CheckState.OK, "1 files indexed")


async def test_a_damaged_lexical_index_is_a_warning(tmp_path: Path) -> None:
    make_index(tmp_path)
    (find_paths().index / "meta.json").write_text("{}")
    result = await run_check(check_index)
    judged(result, CheckState.WARNING, "meta.json is damaged")


@pytest.mark.parametrize(
    ("fields", "state", "said"),
    [
        ({"phase": "indexing", "percentage": 40.0}, CheckState.OK, "40 %"),
        (
            {"phase": "workspace-too-large", "note": "more than 9 files"},
            CheckState.WARNING,
            "more than 9 files",
        ),
        ({"note": "changes are looked for"}, CheckState.WARNING, "looked for"),
    ],
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
    judged(result, state, said)


async def test_a_folder_that_is_gone_or_not_indexed_is_named(tmp_path: Path) -> None:
    write_settings("[context]", f'workspaces = ["{tmp_path / "gone"}", "{tmp_path}"]')
    async with surroundings() as around:
        gone, new = [
            await check_workspace(around, root) for root in await workspaces(around)
        ]
    assert {gone.state, new.state} == {CheckState.WARNING}
    assert str(tmp_path / "gone") in gone.found
    assert new.cure.startswith("byok serve")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "data.db"
    db = sqlite3.connect(file)
    INDEX.create_tables(db)
    db.execute("INSERT INTO workspace(id, root, kept) VALUES(1, ?, 1)", (ROOT,))
    db.execute("INSERT INTO workspace(id, root, kept) VALUES(2, '/w/once', 0)")
    db.executemany("INSERT INTO file VALUES(1, ?, 1, 1, 1, 1, NULL, ?)", ROWS)
    db.commit()
    db.close()
    return file


def test_damage_is_found(database: Path) -> None:
    raw = bytearray(database.read_bytes())
    raw[1 * 4096 : (1 + 1) * 4096] = b"\x5a" * 4096
    database.write_bytes(raw)
    assert find_damage(database, 20)
