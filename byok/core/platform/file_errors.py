"""What a user is told when the operating system refuses byok a file."""

import errno

from byok.core.errors import ByokError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_ACCESS = (
    "Give your user access to it; BYOK_HOME names another folder for byok's own files."
)


def of_system(error: OSError) -> ByokError:
    """Return an error of the operating system as one of byok's, with its cure."""
    why = error.strerror or str(error)
    if error.errno in _FULL:
        place = f" ({error.filename})" if error.filename else ""
        return ByokError(f"{why}{place}.", hint="Free some disk space.")
    if error.filename:
        return ByokError(f"{error.filename}: {why}.", hint=_NO_ACCESS)
    return ByokError(f"the system: {why}.")
