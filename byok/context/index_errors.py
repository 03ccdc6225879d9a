"""What can go wrong with the lexical index, and what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager

from byok.errors import ByokError

_LONGEST = 150  # of its own words
_MEND = "A full disk needs room; `byok index rebuild` mends a damaged index."


class IndexInUse(ByokError):
    """Another process has the index open for writing."""

    status = 422
    code = "index_in_use"


class IndexFailed(ByokError):
    """The index cannot be read or written: the disk is full, or it is damaged."""

    status = 503
    code = "index_failed"
    retryable = True


@contextmanager
def translated() -> Iterator[None]:
    """Turn tantivy's errors into byok's; a panic is not even an Exception."""
    try:
        yield
    except ValueError as error:
        if "LockBusy" in str(error):
            raise IndexInUse(
                "Another byok process is using the index.",
                hint="Wait for it, or start the daemon (byok serve): all ask that one.",
            ) from error
        raise _failed("cannot be used", error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":
            raise _failed("is damaged", error) from error
        raise


def _failed(how: str, error: BaseException) -> IndexFailed:
    return IndexFailed(f"The index {how}: {str(error)[:_LONGEST]}.", hint=_MEND)
