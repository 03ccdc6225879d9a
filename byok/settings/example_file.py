"""The example of the settings file, which is in the package or beside the clone."""

from importlib import resources
from pathlib import Path

EXAMPLE = "config.example.toml"


def example() -> str:
    """Return the example file: every key with its default and an explanation."""
    packed = resources.files(__package__) / EXAMPLE
    in_checkout = Path(__file__).parents[2] / EXAMPLE
    return (packed if packed.is_file() else in_checkout).read_text("utf-8")
