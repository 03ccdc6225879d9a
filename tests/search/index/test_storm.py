"""The index never lies: after any changes it holds what a fresh walk finds."""

from pathlib import Path

import pytest

from tests.fakes.storm import packages, storm

pytestmark = pytest.mark.slow  # it starts programs, or works for seconds


@pytest.mark.parametrize("seed", [1, 2])
async def test_after_a_storm_nothing_is_missing_and_nothing_is_stale(
    tmp_path: Path, seed: int
) -> None:
    told = await storm(tmp_path, 300, seed, looks=3)
    assert "0 missing and 0 stale" in told
    print(told)


async def test_storm_edit_in_each_of_many_linked_packages_is_found(
    tmp_path: Path,
) -> None:
    seconds = await packages(tmp_path, 12)
    assert len(seconds) == 12
    print(f"found after at most {max(seconds):.2f} s")
