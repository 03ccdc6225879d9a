"""Validate keys, and identify them by fingerprint without showing them."""

import hashlib

from byok.errors import ConfigError

SHORTEST = 8
LONGEST = 512


def clean_key(raw: str, *, shortest: int = SHORTEST) -> str:
    """Return a pasted key without spaces, quotes and `Bearer` around it.

    Raises:
        ConfigError: the rest cannot be a key; the message never contains the value.
    """
    key = raw.strip()
    if len(key) > 1 and key[0] == key[-1] and key[0] in "\"'":
        key = key[1:-1].strip()
    while key[:7].lower() == "bearer ":
        key = key[7:].strip()
    if len(key) < shortest:
        raise ConfigError(f"A key has at least {shortest} characters; this has fewer.")
    if len(key) > LONGEST:
        raise ConfigError(f"A key has at most {LONGEST} characters; this has more.")
    if not all("!" <= char <= "~" for char in key):
        raise ConfigError(
            "A key has printable ASCII characters only and no spaces; this has others.",
            hint="Copy it again from the provider's page.",
        )
    return key


def fingerprint(key: str) -> str:
    """Return the first 8 hex digits of its SHA-256, to tell keys apart."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]
