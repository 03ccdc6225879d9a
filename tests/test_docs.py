"""Documents that cannot fall behind."""

import re
import subprocess
from pathlib import Path

import pytest

from byok import __version__
from byok.dialects.presets import PRESETS

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md")


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_every_path_in_a_page_exists(name: str) -> None:
    text = page(name)
    paths = re.findall(r"`((?:byok|tests|scripts|docs)/[\w./-]*)`", text)
    paths += re.findall(r"\]\(([\w./-]+)\)", text)
    base = (ROOT / name).parent
    missing = [p for p in paths if not ((ROOT / p).exists() or (base / p).exists())]
    assert missing == []


def test_the_readme_names_every_preset() -> None:
    text = page("README.md")
    assert [name for name in PRESETS if f"`{name}`" not in text] == []


def test_the_architecture_fits_two_pages() -> None:
    assert len(page("docs/ARCHITECTURE.md").splitlines()) <= 120


def test_the_changelog_tells_of_this_version() -> None:
    sections = re.findall(r"^## (.+)$", page("CHANGELOG.md"), re.MULTILINE)
    released = [name for name in sections if name != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", released[0])


def test_the_changelog_says_nothing_twice() -> None:
    lines = page("CHANGELOG.md").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert sorted(set(entries)) == sorted(entries)


def test_the_distribution_is_named_byokd_everywhere() -> None:
    """On the registry `byok` is somebody else's: no text may tell to install it."""
    assert re.search(r'^name = "byokd"', page("pyproject.toml"), re.MULTILINE)
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    install = re.compile(
        r"\b(?:pipx?|uvx?)\b[^\n]*\b(?:install|inject|run)\b[^\n]*[\"' ]byok(?![\w.])"
        r"|\buvx byok\b|byok\[\w+\]"
    )
    texts = {
        name: (ROOT / name).read_text("utf-8", "ignore")
        for name in listed.stdout.split("\0")
        if name and (ROOT / name).is_file()
    }
    assert len(texts) > 500
    assert [name for name, text in texts.items() if install.search(text)] == []


def test_every_dependency_is_explained() -> None:
    block = page("pyproject.toml").partition("dependencies = [")[2].partition("\n]")[0]
    names = re.findall(r'^\s*"([a-z-]+)', block, re.MULTILINE)
    assert len(names) >= 10
    text = page("docs/ARCHITECTURE.md")
    assert [n for n in names if n not in text] == []
