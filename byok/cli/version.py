"""byok version, and byok --version."""

import platform

from byok import __version__
from byok.cli.terminal import say


def version() -> None:
    """Print the versions of byok and Python."""
    say(f"byok {__version__} (Python {platform.python_version()})")
