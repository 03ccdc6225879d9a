"""Conventions of the tree: first lines, names, fakes."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FAKES = ROOT / "tests" / "fakes"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.slow
def test_a_file_says_what_it_is_for(trees: dict[Path, ast.Module]) -> None:
    assert [name(p) for p, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_a_public_class_has_a_name_of_its_own(trees: dict[Path, ast.Module]) -> None:
    homes = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name(path))
    assert {cls: paths for cls, paths in homes.items() if len(paths) > 1} == {}


def test_a_fake_says_what_it_stands_for() -> None:
    found = [path.name for path in FAKES.glob("*.py") if path.read_text()[:3] != '"""']
    assert found == []


def test_no_module_imports_from_a_test_module() -> None:
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
    found = [
        f"{name(path)}: {module}"
        for path in paths
        for module in re.findall(r"from (tests[\w.]*) import", path.read_text("utf-8"))
        if not module.startswith("tests.fakes") or ".test_" in module
        if module != "tests"  # modules of the suite itself, such as folding.py
    ]
    assert found == []
