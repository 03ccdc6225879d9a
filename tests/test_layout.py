"""Conventions of the tree: sizes, first lines, twins."""

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "byok").rglob("*.py"))
MODULES = [path for path in SOURCES if path.name not in ("__init__.py", "__main__.py")]
LONGEST = 300
# Vocabulary: types without behaviour, which every other test uses.
TYPES = {
    "byok/chat.py",
    "byok/augment/reply_job.py",
    "byok/events.py",
    "byok/dialects/base.py",
    "byok/routing.py",
    "byok/upstream/base.py",
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_file_is_longer_than_300_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST


def test_the_median_module_has_at_most_120_lines() -> None:
    sizes = [len(path.read_text("utf-8").splitlines()) for path in MODULES]
    assert statistics.median(sizes) <= 120


@pytest.mark.parametrize("path", [m for m in MODULES if name(m) not in TYPES], ids=name)
def test_a_module_has_its_test(path: Path) -> None:
    twin = ROOT / "tests" / path.relative_to(ROOT / "byok")
    assert twin.with_name(f"test_{path.name}").exists()


def test_a_folder_holds_at_least_three_files() -> None:
    folders = {path.parent for path in MODULES}
    assert [f for f in folders if len(list(f.glob("*.py"))) < 3] == []
