"""File versions: what they are called, and how large one may be."""

from hashlib import sha256

MAX_BYTES = 1024 * 1024


def blob_name(path: str, content: bytes) -> bytes:
    """Return the name of a file version: `sha256(path ‖ content)`, 32 bytes.

    Clients compute the same one. There is no separator: two pairs can share a name.
    """
    return sha256(path.encode("utf-8", "surrogateescape") + content).digest()
