"""Where keys come from: environment, command, keyring, vault."""

from byok.settings.keys.ladder import (
    FoundKey,
    KeyLadder,
    KeyLookup,
    clean_key,
    fingerprint,
)

__all__ = ["FoundKey", "KeyLadder", "KeyLookup", "clean_key", "fingerprint"]
