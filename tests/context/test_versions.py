"""Names of file versions."""

from hashlib import sha256

from byok.context.versions import blob_name


def test_a_name_is_the_hash_that_clients_compute() -> None:
    assert blob_name("a/ü.py", b"x") == sha256("a/ü.py".encode() + b"x").digest()


def test_a_path_that_is_no_utf_8_has_a_name_too() -> None:
    assert blob_name("\udcff.py", b"") == sha256(b"\xff.py").digest()


def test_two_pairs_can_share_a_name() -> None:
    assert blob_name("src/a", b".py code") == blob_name("src/a.py", b" code")
