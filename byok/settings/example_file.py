"""The example settings file, which is in the package or at the root of a clone."""

from importlib import resources
from pathlib import Path

EXAMPLE = "config.example.toml"


def example() -> str:
    """Return the example file: every key with its default and an explanation."""
    packaged = resources.files(__package__) / EXAMPLE
    in_clone = Path(__file__).parents[2] / EXAMPLE
    return (packaged if packaged.is_file() else in_clone).read_text("utf-8")
