"""Where Python looks for modules: never in the folder that byok was started in.

That may be a repository, whose author would run code as the user: `python -m` looks
there first, and so does an empty entry of PYTHONPATH. Only what Python has loaded
already may be imported here.
"""

import os
import sys

_PYTHON = os.path.realpath(os.path.dirname(os.__file__))
_OWN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def without_working_folder(path: list[str], own: str = _OWN) -> list[str]:
    """Return a search path without the working folder.

    Unless byok itself is there, or Python.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it is gone: nothing is found in it
        return path
    if here in (os.path.realpath(own), _PYTHON) or here.startswith(_PYTHON + os.sep):
        return path
    return [entry for entry in path if os.path.realpath(entry) != here]


def leave_out_working_folder() -> None:
    """Look for modules elsewhere from now on."""
    sys.path[:] = without_working_folder(sys.path)
