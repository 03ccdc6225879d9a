import hashlib
import uuid
from dataclasses import replace

import pytest

from byok.core.errors import ConfigError
from byok.search.vectors.team.collection import (
    PROBE_ID,
    TeamNames,
    collection_name,
    from_uuid,
    is_team_name,
    to_uuid,
)
from byok.search.vectors.types import SpaceName

SPACE = SpaceName("nomic-embed-text", 768, "1", "search_document: ", "search_query: ")
SALT = "correct horse battery staple"


def test_a_collection_is_named_by_team_and_space() -> None:
    name = collection_name("platform", SPACE)
    assert name.startswith("byok_platform_")
    assert len(name.rpartition("_")[2]) == 16
    assert name == collection_name("platform", replace(SPACE))


@pytest.mark.parametrize(
    "other",
    [
        replace(SPACE, model="nomic-embed-code"),
        replace(SPACE, dimensions=256),
        replace(SPACE, recipe="2"),
        replace(SPACE, document_prefix=""),
        replace(SPACE, query_prefix=""),
        replace(SPACE, recipe="1s", document_prefix="earch_document: "),
        replace(SPACE, model="\ud800"),
    ],
)
def test_another_space_is_another_collection(other: SpaceName) -> None:
    assert collection_name("platform", other) != collection_name("platform", SPACE)


def test_another_team_is_another_collection() -> None:
    assert collection_name("a", SPACE) != collection_name("b", SPACE)


@pytest.mark.parametrize(
    ("name", "good"),
    [
        *[("platform", True), ("a", True), ("team-1_x", True), ("x" * 32, True)],
        *[("", False), ("x" * 33, False), ("../x", False), ("Team", False)],
        *[("a b", False), ("-a", False), ("é", False), ("a\n", False)],
    ],
)
def test_team_names(name: str, good: bool) -> None:
    assert is_team_name(name) is good


def test_members_with_one_salt_use_the_same_names() -> None:
    key = hashlib.sha256(b"text").digest()
    one, other = TeamNames(SALT), TeamNames(SALT)
    assert one.point(key) == other.point(key)
    assert one.repository("host/a") == other.repository("host/a")
    assert one.check == other.check
    assert one.points([key]) == {one.point(key): key}


def test_without_the_salt_a_known_text_is_not_found() -> None:
    key = hashlib.sha256(b"text").digest()
    name = TeamNames(SALT).point(key)
    assert name != key[:16]
    assert name != TeamNames(SALT + "!").point(key)


def test_names_of_different_kinds_never_meet() -> None:
    names = TeamNames(SALT)
    made = {names.point(b"").hex(), names.repository(""), names.check}
    assert len(made) == 3


@pytest.mark.parametrize("salt", ["", "x" * 15])
def test_a_salt_that_could_be_guessed_is_refused(salt: str) -> None:
    with pytest.raises(ConfigError, match="fewer than 16") as caught:
        TeamNames(salt)
    assert "openssl" in caught.value.hint


def test_ids_of_points_are_uuids() -> None:
    name = TeamNames(SALT).point(b"key")
    assert str(uuid.UUID(bytes=name)) == to_uuid(name)
    assert from_uuid(to_uuid(name)) == name
    assert from_uuid(uuid.UUID(PROBE_ID)) == uuid.UUID(PROBE_ID).bytes


@pytest.mark.parametrize("text", ["", "x", 7, None, "00", "f" * 33, "é" * 32])
def test_what_is_no_uuid_is_no_name(text: object) -> None:
    assert from_uuid(text) is None
