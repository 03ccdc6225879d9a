"""The mapped file: rows come back, links are refused, foreign files stay."""

import os
from pathlib import Path

import numpy as np
import pytest

from byok.core.errors import ConfigError
from byok.search.vectors.store.rows_file import BLOCK, RowsFile, is_own


def rows(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-127, 128, (count, 8), np.int8)
    return numbers, rng.random(count, np.float32)


def test_rows_come_back_at_any_place_also_across_blocks(tmp_path: Path) -> None:
    file = RowsFile(tmp_path / "a.rows", 1, 8)
    places = np.array([0, 1, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 5, 3 * BLOCK - 1])
    numbers, scales = rows(len(places))
    file.make_room(3 * BLOCK)
    file.write(places, numbers, scales)
    file.close()
    file = RowsFile(tmp_path / "a.rows", 1, 8)
    for at, place in enumerate(places):
        block = file.blocks[place // BLOCK]
        assert (block.numbers[place % BLOCK] == numbers[at]).all()
        assert block.scales[place % BLOCK] == scales[at]
    assert not file.blocks[0].numbers[2].any()
    assert file.crc_of(0) != file.crc_of(1)
    file.close()


def test_what_was_mapped_stays_readable_while_the_file_grows(tmp_path: Path) -> None:
    file = RowsFile(tmp_path / "a.rows", 1, 8)
    file.make_room(1)
    before = file.blocks
    file.make_room(BLOCK * 40)
    numbers, scales = rows(1)
    file.write(np.array([3]), numbers, scales)
    assert (before[0].numbers[3] == numbers[0]).all()
    file.close()
    assert (before[0].numbers[3] == numbers[0]).all()


@pytest.mark.parametrize(("space", "length"), [(2, 8), (1, 16)])
def test_a_file_of_another_space_is_begun_anew(
    tmp_path: Path, space: int, length: int
) -> None:
    file = RowsFile(tmp_path / "a.rows", 1, 8)
    file.make_room(1)
    file.close()
    file = RowsFile(tmp_path / "a.rows", space, length)
    assert file.blocks == ()
    file.close()


@pytest.mark.case("B128")
def test_a_file_that_is_not_ours_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "a.rows"
    path.write_bytes(b"my own notes")
    assert not is_own(path)
    RowsFile(path, 1, 8).close()
    assert (tmp_path / "a.rows.damaged-1").read_bytes() == b"my own notes"
    assert is_own(path)


@pytest.mark.case("B128")
@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_a_link_is_refused_and_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"byok rows\n and more")
    (tmp_path / "a.rows").symlink_to(target)
    with pytest.raises(ConfigError, match="plain file"):
        RowsFile(tmp_path / "a.rows", 1, 8)
    assert not is_own(tmp_path / "a.rows")
    assert target.read_bytes() == b"byok rows\n and more"


@pytest.mark.skipif(os.name != "posix", reason="links and modes of POSIX")
def test_the_file_is_private_and_tells_when_it_was_cut(tmp_path: Path) -> None:
    file = RowsFile(tmp_path / "a.rows", 1, 8)
    file.make_room(BLOCK)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert not file.is_short
    os.truncate(file.path, 5000)
    assert file.is_short
    file.make_room(BLOCK)
    assert not file.is_short
    file.close()
    assert file.is_short
