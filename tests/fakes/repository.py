"""Repositories made with git."""

import subprocess
from pathlib import Path


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
