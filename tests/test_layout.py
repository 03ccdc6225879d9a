"""Conventions of the tree: first lines, names, fakes."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def sources(folder: str) -> dict[str, str]:
    """Return the texts of the modules below a folder by their paths."""
    files = (ROOT / folder).rglob("*.py")
    return {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in files}


@pytest.mark.parametrize("folder", ["byok", "tests/fakes"])
def test_a_file_says_what_it_is_for(folder: str) -> None:
    texts = sources(folder)
    found = {name: re.match(r"r?(\"\"\"|''')", text) for name, text in texts.items()}
    assert [name for name, match in found.items() if not match] == []


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for name, text in sources("byok").items():
        for found in re.findall(r"^class ([A-Za-z]\w*)", text, re.MULTILINE):
            homes[found].append(name)
    assert {cls: names for cls, names in homes.items() if len(names) > 1} == {}


def test_no_module_imports_from_a_test_module() -> None:
    found = [
        f"{name}: {module}"
        for name, text in (sources("tests") | sources("tools")).items()
        for module in re.findall(r"from (tests[\w.]*) import", text)
        if not module.startswith("tests.fakes") or ".test_" in module
        if module != "tests"  # modules of the suite itself, such as folding.py
    ]
    assert found == []
