"""Names of file versions."""

from hashlib import sha256

import pytest

from byok.index.versions import blob_name, is_path


def test_a_name_is_the_hash_that_clients_compute() -> None:
    assert blob_name("a/ü.py", b"x") == sha256("a/ü.py".encode() + b"x").digest()


def test_a_path_that_is_no_utf_8_has_a_name_too() -> None:
    assert blob_name("\udcff.py", b"") == sha256(b"\xff.py").digest()


def test_two_pairs_can_share_a_name() -> None:
    assert blob_name("src/a", b".py code") == blob_name("src/a.py", b" code")


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
def test_no_file_has_an_endless_path(path: str, can_be: bool) -> None:
    assert is_path(path) is can_be
