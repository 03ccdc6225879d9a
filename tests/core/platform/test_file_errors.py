"""What a user is told when the operating system refuses byok a file."""

import errno
import os

import pytest

from byok.core.platform.file_errors import of_system


@pytest.mark.parametrize(
    ("number", "file", "sentence", "cure"),
    [
        (errno.ENOSPC, None, "No space left on device.", "disk space"),
        (errno.ENOSPC, "/a/b", "No space left on device (/a/b).", "disk space"),
        (errno.EROFS, "/a/b", "/a/b: Read-only file system.", "BYOK_HOME"),
        (errno.EIO, None, "the system: Input/output error.", ""),
    ],
)
def test_a_refused_file_is_told_with_its_cure(
    number: int, file: str | None, sentence: str, cure: str
) -> None:
    said = of_system(OSError(number, os.strerror(number), file))
    assert (said.message, cure in said.hint) == (sentence, True)
