"""Remove the working folder from Python's module search path.

The working folder may be a repository, and its author could run code as the user:
`python -m` and an empty entry of PYTHONPATH make Python look there first. This module
may import only modules that Python has already loaded.
"""

import os
import sys

_PYTHON = os.path.realpath(os.path.dirname(os.__file__))
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))


def without_working_folder(path: list[str], own: str = _ROOT) -> list[str]:
    """Return a search path without the working folder.

    The folder stays if byok itself or Python's library is in it.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was removed, so no module can be in it
        return path
    if here in (os.path.realpath(own), _PYTHON) or here.startswith(_PYTHON + os.sep):
        return path
    return [entry for entry in path if os.path.realpath(entry) != here]


def leave_out_working_folder() -> None:
    """Remove the working folder from the module search path."""
    sys.path[:] = without_working_folder(sys.path)
