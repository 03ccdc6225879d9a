"""Documents that cannot fall behind."""

import re
import subprocess
from pathlib import Path

import pytest

from byok import __version__
from byok.cli.checks.examine import CHECKS
from byok.features.journal.entry import JournalEntry
from scripts import glossary_page
from scripts.doc_names import FOREIGN, unknown_names
from tools.site.hooks import ABOVE, relink

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def first_cells(name: str) -> set[str]:
    """Return the names in the first cells of a page's tables, without backquotes."""
    rows = re.findall(r"^\| ([^|]+) \|", page(name), re.MULTILINE)
    return {cell.strip(" `") for row in rows for cell in row.split(",")}


def test_the_page_about_the_journal_explains_every_column() -> None:
    assert {"id", *JournalEntry._fields} <= first_cells("docs/reference/journal.md")


def test_the_page_about_doctor_lists_every_check() -> None:
    assert {check.name for check in CHECKS} <= first_cells("docs/reference/doctor.md")


def test_the_architecture_fits_two_pages() -> None:
    lines = page("docs/ARCHITECTURE.md").splitlines()
    assert len(lines) <= 140
    assert [line for line in lines if len(line) > 100] == []


def test_the_changelog_tells_of_this_version() -> None:
    sections = re.findall(r"^## (.+)$", page("CHANGELOG.md"), re.MULTILINE)
    released = [name for name in sections if name != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", released[0])


def test_the_changelog_says_nothing_twice() -> None:
    lines = page("CHANGELOG.md").splitlines()
    entries = [line for line in lines if line.startswith("- ")]
    assert sorted(set(entries)) == sorted(entries)


@pytest.fixture(scope="module")
def tracked() -> dict[str, str]:
    """The texts of all files that git knows, by name."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {
        name: (ROOT / name).read_text("utf-8", "ignore")
        for name in listed.stdout.split("\0")
        if name and (ROOT / name).is_file()
    }


def test_the_distribution_is_named_byokd_everywhere(tracked: dict[str, str]) -> None:
    """On the registry `byok` is somebody else's: no text may tell to install it."""
    assert re.search(r'^name = "byokd"', page("pyproject.toml"), re.MULTILINE)
    install = re.compile(
        r"\b(?:pipx?|uvx?)\b[^\n]*\b(?:install|inject|run)\b[^\n]*[\"' ]byok(?![\w.])"
        r"|\buvx byok\b|byok\[\w+\]"
    )
    assert len(tracked) > 500
    assert [name for name, text in tracked.items() if install.search(text)] == []


def test_texts_name_only_pages_that_exist(tracked: dict[str, str]) -> None:
    named = {
        page
        for name, text in tracked.items()
        if not name.startswith("tests/")  # which make up pages
        for page in re.findall(r"(?<![/.])\bdocs/[\w/-]+\.md", text)
    }
    assert len(named) > 30
    codex = "docs/config.md"
    assert [page for page in named if not (ROOT / page).exists()] == [codex]


def test_every_dependency_is_explained() -> None:
    block = page("pyproject.toml").partition("dependencies = [")[2].partition("\n]")[0]
    names = re.findall(r'^\s*"([a-z-]+)', block, re.MULTILINE)
    assert len(names) >= 10
    text = page("docs/ARCHITECTURE.md")
    assert [n for n in names if n not in text] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_document_names_only_what_exists(path: Path) -> None:
    assert unknown_names(path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "byok/core/wire/no_such.py",
        "no_such.py",
        "wire/no_such/",
        "byok no-such-command",
        "byok index no-such-command",
        "byok serve --no-such-option",
        "--no-such-option",
        "chat.no_such_setting",
        "[no_such_section]",
        "NoSuchClass",
        "no_such_function()",
        "NO_SUCH_VARIABLE",
        "/no-such-endpoint",
    ],
)
def test_a_name_that_does_not_exist_is_found(tmp_path: Path, name: str) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"Text with `{name}` in it.\n", "utf-8")
    assert unknown_names(file)


@pytest.mark.parametrize(
    "name",
    [
        "byok/core/wire/sse.py",
        "core/wire/sse.py",
        "byok index add DIR",
        "chat.retrieval",
    ],
)
def test_a_name_that_exists_is_not_reported(tmp_path: Path, name: str) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"Text with `{name}` in it.\n", "utf-8")
    assert unknown_names(file) == []


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        *(("page.md", True), ("#the-end", True), ("page.md#the-end", True)),
        *(("no.md", False), ("#start", False), ("page.md#start", False)),
    ],
)
def test_a_link_leads_to_a_page_and_a_heading(
    tmp_path: Path, link: str, leads: bool
) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"# Page\n\n[A link]({link})\n\n## The end\n", "utf-8")
    assert (unknown_names(file) == []) is leads


def test_a_user_finds_twelve_pages_that_can_be_read_in_an_hour() -> None:
    pages = {*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "ARCHITECTURE.md"}
    assert len(pages) <= 12
    assert sum(len(file.read_text("utf-8").split()) for file in pages) <= 12_000


def test_the_site_shows_every_page() -> None:
    listed = re.findall(r": (\S+\.md)$", page("tools/site/mkdocs.yml"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in DOCUMENTS[2:]}
    assert sorted(listed) == sorted({*pages, *ABOVE.values()})


def test_a_link_leads_where_the_site_has_the_page() -> None:
    text = (
        "[a](connect.md#by-hand) [b](../CHANGELOG.md) [c](../byok/x.py) [d](https://d)"
    )
    assert relink(text, "start.md") == (
        "[a](connect.md#by-hand) [b](changelog.md) c [d](https://d)"
    )
    assert relink("[e](docs/zh/README.md)", "index.md") == "[e](zh/README.md)"


def test_a_file_in_a_row_belongs_to_the_room_of_the_row(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("| `byok/core/wire/` | `sse.py` `keyring_store.py` |\n", "utf-8")
    assert set(unknown_names(file)) == {"keyring_store.py"}


def test_every_foreign_name_is_used() -> None:
    texts = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert [name for name in FOREIGN if name not in texts] == []


def test_the_glossary_has_at_most_sixty_terms_in_the_rooms_of_the_tree() -> None:
    assert sum(map(len, glossary_page.TERMS.values())) <= glossary_page.MOST
    assert all((ROOT / room).is_dir() for room in glossary_page.TERMS)


@pytest.mark.parametrize(
    "source", ["", "class Known:\n    pass\n"], ids=["missing", "without docstring"]
)
def test_the_glossary_refuses_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "known.py").write_text(source, "utf-8")
    monkeypatch.setattr(glossary_page, "ROOT", tmp_path)
    monkeypatch.setattr(glossary_page, "TERMS", {"room": ("Known",)})
    with pytest.raises(glossary_page.GlossaryError, match="Known"):
        glossary_page.page()


def test_the_glossary_shows_the_first_line_of_a_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "room" / "below").mkdir(parents=True)
    text = 'class Known:\n    """What it is.\n\n    More.\n    """\n'
    (tmp_path / "room" / "below" / "known.py").write_text(text, "utf-8")
    monkeypatch.setattr(glossary_page, "ROOT", tmp_path)
    monkeypatch.setattr(glossary_page, "TERMS", {"room": ("Known",)})
    assert "| `Known` | `room/below/known.py` | What it is. |" in glossary_page.page()


def source_texts() -> str:
    """Return byok's code with every text in one piece; what is filled in is NUL."""
    files = (ROOT / "byok").rglob("*.py")
    code = "\n".join(file.read_text("utf-8") for file in files)
    return re.sub(r"\{[^{}\n]*\}", "\0", re.sub(r'"\n\s*f?"', "", code))


def test_troubleshooting_quotes_messages_that_byok_prints() -> None:
    text = page("docs/troubleshooting.md")
    table = text.partition("## By what you see")[2].partition("## The log")[0]
    said = [
        quote.removeprefix("[byok] … ")
        for row in table.splitlines()
        for quote in re.findall(r"`([^`]+ [^`]+)`", row.partition(" | ")[0])
    ]
    assert len(said) > 10
    quotes = [re.sub(r" \d+$", "", quote.replace("http://…", "")) for quote in said]
    patterns = [".*".join(map(re.escape, quote.split("…"))) for quote in quotes]
    texts = source_texts()
    unknown = [p for p in patterns if not re.search(p, texts)]
    assert unknown == [re.escape("The index cannot be used")]  # put together
