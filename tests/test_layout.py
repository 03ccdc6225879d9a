"""Conventions of the tree: first lines, names, fakes."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "byok").rglob("*.py"))
FAKES = ROOT / "tests" / "fakes"
# Past participles that do not end in -ed; "cut", "read" or "set" are verbs as well.
IRREGULAR = """
    been begun bent bound bought brought broken built caught chosen dealt done drawn
    driven fallen fed felt flown forgotten found frozen given gone gotten grown heard
    held hidden kept known laid led lent lost made meant met paid said seen sent shot
    shown shut sold sought spent spoken stood struck swept sworn taken taught thrown
    told torn understood woken won worn written
"""
VERBS_IN_ED = ("embed", "exceed", "feed", "heed", "need", "proceed", "seed", "shed")
# A participle before one of these is bare too: `found_in`, `kept_by`.
PREPOSITIONS = ("as", "at", "by", "for", "from", "in", "into", "of", "on", "to", "with")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """What each file of byok says, read once."""
    return {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}


def test_a_file_says_what_it_is_for(trees: dict[Path, ast.Module]) -> None:
    assert [name(p) for p, tree in trees.items() if not ast.get_docstring(tree)] == []


def functions(tree: ast.Module) -> Iterator[str]:
    """List the functions that are called as such: a property may be an adjective."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = " ".join(map(ast.unparse, node.decorator_list))
            if "property" not in decorators and "setter" not in decorators:
                yield node.name


def is_bare_participle(function: str) -> bool:
    first, *rest = function.strip("_").split("_")
    ends = first.endswith("ed") and first not in VERBS_IN_ED
    return (ends or first in IRREGULAR.split()) and (
        not rest or rest[0] in PREPOSITIONS
    )


def test_a_function_name_is_a_verb_or_a_noun(trees: dict[Path, ast.Module]) -> None:
    assert [
        f"{name(path)}: {function}"
        for path, tree in trees.items()
        for function in functions(tree)
        if is_bare_participle(function)
    ] == []


@pytest.mark.parametrize(
    ("function", "is_bare"),
    [
        *[("decoded", True), ("_found", True), ("kept_by", True), ("__told", True)],
        *[("decode", False), ("feed", False), ("is_settled", False), ("cut", False)],
        *[("selected_text", False), ("known_models", False)],
    ],
)
def test_a_bare_participle_is_seen(function: str, is_bare: bool) -> None:
    assert is_bare_participle(function) is is_bare


def test_a_public_class_has_a_name_of_its_own(trees: dict[Path, ast.Module]) -> None:
    homes = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(name(path))
    assert {cls: paths for cls, paths in homes.items() if len(paths) > 1} == {}


def test_every_fake_is_listed_once_with_what_it_stands_for() -> None:
    tree = ast.parse((FAKES / "__init__.py").read_text("utf-8"))
    listed = re.findall(r"(?m)^    (\w+) +\S", ast.get_docstring(tree) or "")
    files = [path.stem for path in FAKES.glob("*.py") if path.name != "__init__.py"]
    assert sorted(listed) == sorted(f for f in files if not f.startswith("test_"))


def test_no_module_imports_from_a_test_module() -> None:
    paths = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "tools").rglob("*.py")]
    found = [
        f"{name(path)}: {module}"
        for path in paths
        for module in re.findall(r"from (tests[\w.]*) import", path.read_text("utf-8"))
        if not module.startswith("tests.fakes") or ".test_" in module
    ]
    assert found == []
