"""Read the journal for the page: in a thread, with an error that the page can show."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from byok.errors import CannotStart, NotReady

T = TypeVar("T")


async def read_journal(path: Path, read: Callable[[], T]) -> T:
    """Return what `read` returns, which may block.

    Raises:
        NotReady: the journal cannot be read just now; the message says why.
    """
    try:
        return await asyncio.to_thread(read)
    except CannotStart as error:  # which would be an answer with status 500
        raise NotReady(error.message, code=error.code, hint=error.hint) from error
    except OSError as error:
        raise NotReady(
            f"The journal {path} cannot be read: {error.strerror}."
        ) from error
