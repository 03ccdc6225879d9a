"""The table in the package: small, quick to read, and never the end of a request."""

from importlib import resources

import pytest

from byok.dialects.known_models import EMPTY_TABLE
from byok.upstream.model_table import load_table, packed_table


def test_the_packed_table_knows_the_models_of_the_vendors() -> None:
    table = packed_table()
    assert table is packed_table()
    assert table.source
    assert (resources.files("byok") / "known_models.json").is_file()


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"vendors": 1}'])
def test_a_damaged_table_is_reported_and_counts_as_empty(
    content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert load_table(lambda: content) is EMPTY_TABLE
    assert "the table of known models is not used" in caplog.text


def test_a_missing_table_counts_as_empty() -> None:
    def missing() -> bytes:
        raise FileNotFoundError("no table")

    assert load_table(missing) is EMPTY_TABLE
