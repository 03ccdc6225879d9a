"""Names of file versions."""

from hashlib import sha256

import pytest

from byok.search.index.types import blob_name, is_path


def test_blob_name_is_the_hash_that_clients_compute() -> None:
    assert blob_name("a/ü.py", b"x") == sha256("a/ü.py".encode() + b"x").digest()


def test_blob_name_of_a_path_that_is_no_utf_8() -> None:
    assert blob_name("\udcff.py", b"") == sha256(b"\xff.py").digest()


@pytest.mark.parametrize(
    ("path", "can_be"),
    [
        ("", True),
        ("a/b.py", True),
        ("a/" + "x" * 255, True),
        ("a/" + "x" * 256, False),
        ("x/" * 2047 + "ab", True),
        ("x/" * 2047 + "abc", False),
        ("/" * 10_000_000, False),
    ],
)
def test_blob_name_path_length_is_limited(path: str, can_be: bool) -> None:
    assert is_path(path) is can_be
