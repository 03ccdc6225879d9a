"""Every language is a whole row."""

from typing import Any

import pytest

from byok.protocols.augment.models import LANGUAGES


@pytest.mark.parametrize("row", LANGUAGES, ids=lambda row: row["vscode_name"])
def test_a_language_has_a_name_an_id_and_extensions(row: dict[str, Any]) -> None:
    assert row.keys() == {"name", "vscode_name", "extensions"}
    assert row["name"]
    assert row["vscode_name"] == row["vscode_name"].lower()
    assert row["extensions"]
    assert all(extension.startswith(".") for extension in row["extensions"])


def test_no_language_and_no_extension_is_there_twice() -> None:
    for found in (
        [row["vscode_name"] for row in LANGUAGES],
        [extension for row in LANGUAGES for extension in row["extensions"]],
    ):
        assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("language", "extension"),
    [
        ("python", ".py"), ("typescript", ".ts"), ("typescriptreact", ".tsx"),
        ("cpp", ".cpp"), ("csharp", ".cs"), ("shellscript", ".sh"), ("go", ".go"),
        ("rust", ".rs"), ("java", ".java"), ("markdown", ".md"),
    ],
)  # fmt: skip
def test_the_usual_languages_are_there(language: str, extension: str) -> None:
    [row] = [row for row in LANGUAGES if row["vscode_name"] == language]
    assert extension in row["extensions"]
