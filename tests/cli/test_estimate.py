"""What a first build takes, by a walk alone."""

from pathlib import Path

import pytest

from byok.cli.estimate import estimate
from byok.core.errors import ConfigError
from byok.search.index.types import IndexOptions


def test_estimate_counts_files_bytes_time_and_disk_by_the_rules_of_the_index(
    tmp_path: Path, clean_environment: Path
) -> None:
    root = tmp_path / "work"
    (root / "node_modules").mkdir(parents=True)
    (root / "node_modules" / "a.js").write_text("x" * 1000)
    (root / ".gitignore").write_text("*.log\n")
    (root / "a.log").write_text("x" * 1000)
    (root / ".env").write_text("SECRET=1")
    for number in range(10):
        (root / f"{number}.py").write_bytes(b"x" * 900_000)
    found = estimate(root, IndexOptions(max_files=100))
    assert (found.files, found.bytes) == (11, 9_000_006)
    assert found.left_out == 3
    assert found.seconds == 1.0
    assert found.disk_bytes == 1_800_001
    assert not found.too_large
    assert "estimated: 1 s" in found.text()
    assert found.as_json()["files"] == 11
    assert not clean_environment.exists()


def test_estimate_with_one_worker_takes_twice_as_long(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.py").write_bytes(b"x" * 900_000)
    assert estimate(tmp_path, IndexOptions(workers=1)).seconds == 2.0
    assert estimate(tmp_path, IndexOptions(workers=8)).seconds == 1.0


def test_estimate_reports_a_folder_that_is_too_large(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("x")
    found = estimate(tmp_path, IndexOptions(max_files=2))
    assert found.too_large
    assert "ripgrep would answer" in found.text()


@pytest.mark.parametrize("name", ["missing", "file"])
def test_estimate_reports_what_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=name):
        estimate(tmp_path / name, IndexOptions(max_files=2))
