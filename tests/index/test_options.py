"""What the user can decide about the context engine."""

import pytest

from byok.config import Settings
from byok.index.options import IndexOptions


def test_defaults_follow_nothing_and_index_everything() -> None:
    options = IndexOptions()
    assert not options.roots
    assert not options.extensions
    assert not options.allow_secret


@pytest.mark.parametrize("name", ["max_files", "workers", "parse_seconds"])
def test_defaults_are_those_of_the_settings(name: str) -> None:
    assert getattr(IndexOptions(), name) == getattr(Settings().context, name)


def test_the_store_is_as_large_as_the_settings_say() -> None:
    assert IndexOptions().store_bytes == Settings().context.store_mb * 2**20
