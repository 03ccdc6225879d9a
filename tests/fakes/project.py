"""A small project to index, repositories made with git, and histories written down."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from byok.search.index.types import Commit, CommitHistory

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


def git(root: Path, *words: str) -> str:
    """Run a command of git in a folder; return what it printed."""
    who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    ran = subprocess.run(
        ["git", *who, *words],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
        errors="surrogateescape",
    )
    return ran.stdout.strip()


class Repository:
    """A repository in a folder, made with git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        return git(self.root, *words)

    def commit(self, message: str, *files: str) -> str:
        for name in files:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write(f"{message}\n")
        self.git("add", "-A")
        self.git(
            "commit", "-q", "--allow-empty", "--allow-empty-message", "-m", message
        )
        return self.git("rev-parse", "HEAD")


def history(*commits: tuple[str, str]) -> CommitHistory:
    """Make a history of messages and files (split at spaces), the newest first."""
    return CommitHistory(
        "0" * 40,
        tuple(
            Commit(f"{n:040}", n, message, tuple(files.split()), len(files.split()))
            for n, (message, files) in enumerate(commits)
        ),
    )
