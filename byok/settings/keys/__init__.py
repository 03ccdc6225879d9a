"""Where keys come from: environment, command, keyring, vault."""

from byok.settings.keys.ladder import (
    FoundKey,
    KeyLadder,
    KeyWanted,
    clean_key,
    fingerprint,
)

__all__ = ["FoundKey", "KeyLadder", "KeyWanted", "clean_key", "fingerprint"]
