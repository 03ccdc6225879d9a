"""Addresses that are told by their spelling."""

import pytest

from byok.core.urls import is_link_local, is_loopback


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:11434", True),
        ("localhost:80", True),
        ("LOCALHOST", True),
        ("[::1]:8000", True),
        ("127.1", False),
        ("0x7f.1", False),
        ("0x7f000001", False),
        ("2130706433", False),
        ("0177.0.0.1", False),
        ("127.0.0.2", False),
        ("0.0.0.0", False),
        ("[::]", False),
        ("[::ffff:127.0.0.1]", False),
        ("localhost.", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
        ("127.0.0.1@example.com", False),
    ],
)
def test_loopback_url_has_one_of_the_plain_spellings_only(host: str, own: bool) -> None:
    assert is_loopback(f"http://{host}/v1") is own


@pytest.mark.parametrize(
    ("addresses", "kept"),
    [
        (["169.254.169.254"], []),
        (["fe80::1%eth0", "::ffff:169.254.169.254"], []),
        (["169.254.1.1", "127.0.0.1"], ["127.0.0.1"]),
        (["10.0.0.1", "::1"], ["10.0.0.1", "::1"]),
    ],
)
def test_link_local_addresses_are_left_out(
    addresses: list[str], kept: list[str]
) -> None:
    assert [a for a in addresses if not is_link_local(a)] == kept
