"""The databases beside the index."""

import sqlite3

from byok.doctor.own_databases import check_database, own_databases
from byok.doctor.results import CheckState
from byok.platform.paths import find_paths, make_private
from tests.fakes.doctors import surroundings


async def test_those_that_exist_are_checked_and_left_as_they_are() -> None:
    paths = find_paths()
    make_private(paths.state_dir)
    with sqlite3.connect(paths.journal) as db:
        db.execute("CREATE TABLE entry(x)")
    db.close()
    paths.provider_data.write_bytes(b"no database" * 999)
    async with surroundings() as around:
        names = await own_databases(around)
        whole, damaged = [await check_database(around, name) for name in names]
    assert names == [str(paths.journal), str(paths.provider_data)]
    assert (whole.state, damaged.state) == (CheckState.OK, CheckState.WARNING)
    assert "byok restart" in damaged.cure
    assert paths.provider_data.read_bytes() == b"no database" * 999
