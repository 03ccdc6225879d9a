"""Where keys come from: environment, command, keyring, vault."""

from byok.keys.ladder import FoundKey, KeyLadder, KeyWanted, clean_key, fingerprint

__all__ = ["FoundKey", "KeyLadder", "KeyWanted", "clean_key", "fingerprint"]
