"""What counts as a key, and how to name one without showing it."""

import hashlib

from byok.errors import ConfigError

SHORTEST = 8
LONGEST = 512


def clean_key(raw: str, *, shortest: int = SHORTEST) -> str:
    """Return the key without what a paste brings along: spaces, quotes, `Bearer`.

    Raises:
        ConfigError: what is left cannot be a key; the value is never part of the text.
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
            "A key has only printable ASCII characters and no space; this has others.",
            hint="Copy it again from the provider's page.",
        )
    return key


def fingerprint(key: str) -> str:
    """Return the first 8 hex digits of its SHA-256, enough to tell two keys apart."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]
