"""The index never lies: after any changes it holds what a fresh walk finds."""

from pathlib import Path

import pytest

from tests.fakes.storm import packages, storm

pytestmark = pytest.mark.slow  # it works for seconds


async def test_after_a_storm_nothing_is_missing_and_nothing_is_stale(
    tmp_path: Path,
) -> None:
    await storm(tmp_path, 300, seed=1, looks=3)


async def test_storm_edit_in_each_of_many_linked_packages_is_found(
    tmp_path: Path,
) -> None:
    await packages(tmp_path, 6)
