"""Names of file versions, and the size limits of a file and its path."""

from hashlib import sha256

MAX_BYTES = 1024 * 1024
_LONGEST_PATH, _LONGEST_NAME = 4096, 255  # of every system


def is_path(path: str) -> bool:
    """Tell whether a file can have such a path; what judges paths takes time."""
    return len(path) <= _LONGEST_PATH and all(
        len(name) <= _LONGEST_NAME for name in path.split("/")
    )


def blob_name(path: str, content: bytes) -> bytes:
    """Return the name of a file version: `sha256(path ‖ content)`, 32 bytes.

    Clients compute the same one. There is no separator: two pairs can share a name.
    """
    return sha256(path.encode("utf-8", "surrogateescape") + content).digest()
