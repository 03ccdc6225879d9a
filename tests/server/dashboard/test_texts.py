"""The texts of the page: a table for each language, and none beside them."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[3] / "byok" / "server" / "dashboard" / "static"
SCRIPTS = sorted(p for p in STATIC.rglob("*.js") if "vendor" not in p.parts)
TABLES = sorted((STATIC / "texts").glob("*.js"))
CODE = [path for path in SCRIPTS if path not in TABLES]
_STRING = r'"((?:[^"\\]|\\.)*)"'
_ENTRY = re.compile(rf"^  {_STRING}:\s*{_STRING},$", re.MULTILINE)
_VALUE = re.compile(r"\{(\w+)\}")
# A sentence or a title: the page's own words begin with a capital and have a space.
_WORDS = re.compile(r"[\"'`>]([A-Z][a-z]+ [a-z]+[^\"'`]*)")
# What would run or parse a text, or take a style from one.
_DANGEROUS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    r"|DOMParser|srcdoc|createContextualFragment|setTimeout\([\"'`]|cssText"
)


def read(path: Path) -> str:
    return path.read_text("utf-8")


def without_comments(text: str) -> str:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"(^|\s)//.*$", "", text, flags=re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(STATIC))


def table(path: Path) -> dict[str, str]:
    """Return the texts of a language by key."""
    joined = re.sub(r'"\s*\+\s*"', "", read(path))
    joined = joined.replace(r"\u00a0", "\N{NO-BREAK SPACE}")
    found = _ENTRY.findall(joined)
    assert len(found) == len(re.findall(r'^  "[^"]+":', joined, re.MULTILINE))
    keys = [key for key, _ in found]
    assert sorted(set(keys)) == sorted(keys)
    return dict(found)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The English texts by key."""
    return table(STATIC / "texts" / "en.js")


def used_keys(code: str) -> tuple[set[str], list[str]]:
    """Return the keys that a script asks for, and patterns of those it composes."""
    plain = set(re.findall(rf"\bt\(\s*{_STRING}", code))
    composed = re.findall(r"\bt\(\s*`([^`]+)`", code)
    return plain, [pattern_of(key) for key in composed]


def optional_keys(code: str) -> list[str]:
    """Return patterns of keys that may be missing: the daemon has words for them."""
    return [
        pattern_of(key)
        for key in re.findall(r"\b(?:textOr|inBoth)\(\s*`([^`]+)`", code)
    ]


def pattern_of(key: str) -> str:
    return re.escape(re.sub(r"\$\{[^}]*\}", "\0", key)).replace("\0", ".+")


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_script_asks_for_texts_that_exist(path: Path, texts: dict[str, str]) -> None:
    plain, patterns = used_keys(read(path))
    assert sorted(plain - texts.keys()) == []
    assert [
        pattern
        for pattern in patterns
        if not any(re.fullmatch(pattern, key) for key in texts)
    ] == []


def test_every_text_is_used(texts: dict[str, str]) -> None:
    code = "\n".join(map(read, CODE))
    strings = set(re.findall(_STRING, code))
    patterns = used_keys(code)[1] + optional_keys(code)
    assert [
        key
        for key in texts
        if key not in strings
        and not any(re.fullmatch(pattern, key) for pattern in patterns)
    ] == []


@pytest.mark.parametrize("path", TABLES, ids=name)
def test_each_language_says_the_same(path: Path, texts: dict[str, str]) -> None:
    own = {k: text for k, text in table(path).items() if not k.startswith("about.")}
    assert own.keys() == texts.keys()
    for key, text in own.items():
        assert text.strip() == text != "", key
        # The form for a count of one may say it in words.
        for form in (*text.split(" | "), *texts[key].split(" | ")):
            values = {"count", *_VALUE.findall(form)}
            assert values == {"count", *_VALUE.findall(texts[key])}, key


def test_every_file_of_texts_is_a_language_of_the_page() -> None:
    listed = re.findall(r'\["(\w+)", "', read(STATIC / "texts.js"))
    assert sorted(listed) == [path.stem for path in TABLES]


def test_chinese_is_written_as_chinese() -> None:
    """With its own marks, and a space between it and Latin words."""
    for key, text in table(STATIC / "texts" / "zh.js").items():
        assert not re.search(r"[一-鿿][,;:?!()]|[,;:?!()][一-鿿]", text), (key, text)
        assert not re.search(r"[一-鿿][A-Za-z0-9]|[A-Za-z0-9][一-鿿]", text), (
            key,
            text,
        )


@pytest.mark.parametrize("path", CODE, ids=name)
def test_a_script_has_no_text_of_its_own(path: Path) -> None:
    assert _WORDS.findall(without_comments(read(path))) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_runs_and_parses_no_text(path: Path) -> None:
    assert _DANGEROUS.findall(without_comments(read(path))) == []
