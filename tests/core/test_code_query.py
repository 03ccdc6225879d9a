"""Questions about code: names of blobs as they are kept, and how code is searched."""

import pytest

from byok.core.code_query import (
    ExcludingRule,
    to_bytes,
    to_text,
)

NAMES = [f"{n:064x}" for n in range(3)]
EMOJI_HALF = "\ud83d"


@pytest.mark.parametrize("name", NAMES)
def test_blob_name_is_kept_as_32_bytes(name: str) -> None:
    assert to_bytes(name) == bytes.fromhex(name)
    assert to_text(to_bytes(name)) == name


@pytest.mark.case("B63")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("a" * 65, id="65"),
        pytest.param("A" * 64, id="upper case"),
        pytest.param("../../etc/passwd", id="dots"),
        pytest.param("a\0b", id="NUL"),
        pytest.param("a" * 64 + "\n", id="newline"),
        pytest.param("", id="empty"),
        pytest.param("x" * 31, id="as long as a hash with a byte before"),
        pytest.param("x" * 32, id="as long as a hash"),
    ],
)
def test_blob_name_in_a_foreign_form_is_kept_apart_and_returned(name: str) -> None:
    kept = to_bytes(name)
    assert len(kept) != 32
    assert to_text(kept) == name


def test_blob_name_in_a_foreign_form_may_be_odd_and_long() -> None:
    assert to_text(to_bytes(EMOJI_HALF)) == "?"
    assert len(to_bytes("x" * 10_000)) < 1000


def test_the_rule_that_leaves_a_path_out_is_named_with_what_lifts_it() -> None:
    line = ExcludingRule("*.log", ".gitignore", 3, "!a.log", ".augmentignore")
    assert all(fact in line.words for fact in ("*.log", ".gitignore", "3"))
    assert all(fact in line.advice for fact in ("!a.log", ".augmentignore"))
    own = ExcludingRule("node_modules/")
    assert ("node_modules/" in own.words, own.advice) == (True, "")
    assert ExcludingRule().words == ""
