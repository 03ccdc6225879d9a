"""What the user can decide about the context engine."""

import pytest

from byok.search.index.types import IndexOptions
from byok.settings import Settings


def test_index_options_default_is_no_workspace_and_every_file() -> None:
    options = IndexOptions()
    assert not options.roots
    assert not options.extensions
    assert not options.allow_secret


@pytest.mark.parametrize("name", ["max_files", "workers", "parse_seconds"])
def test_index_options_defaults_are_those_of_the_settings(name: str) -> None:
    assert getattr(IndexOptions(), name) == getattr(Settings().context, name)


def test_index_options_store_size_is_that_of_the_settings() -> None:
    assert IndexOptions().store_bytes == Settings().context.store_mb * 2**20
