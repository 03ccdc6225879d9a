"""A small project to index."""

from collections.abc import Mapping
from pathlib import Path

FILES = {
    "README.md": "# Bakery\n\nOvens and bread.\n",
    "bakery/oven.py": (
        '"""Ovens."""\n\n\nclass ConvectionOven:\n'
        '    """Bakes bread with moving air."""\n\n'
        "    def preheat(self, degrees: int) -> None:\n"
        '        """Heat the oven before the dough goes in."""\n'
        "        self.degrees = degrees\n"
    ),
    "bakery/till.py": (
        '"""Money."""\n\n\ndef total_price(items: list[int]) -> int:\n'
        '    """Add up what the customer pays."""\n'
        "    return sum(items)\n"
    ),
    ".env": "PASSWORD=not-for-anybody\n",
    ".gitignore": "*.log\n",
    "bake.log": "preheat the convection oven\n",
}


def make_project(root: Path, files: Mapping[str, str] = FILES) -> Path:
    """Write files below a new folder, which looks like a git repository."""
    (root / ".git").mkdir(parents=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    return root
