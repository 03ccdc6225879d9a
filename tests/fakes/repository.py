"""A repository in a folder, made with git."""

import subprocess
from pathlib import Path


class Repository:
    """A repository in a folder, made with git."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str) -> str:
        who = ("-c", "user.name=n", "-c", "user.email=n@example.org")
        ran = subprocess.run(
            ["git", *who, *words],
            cwd=self.root,
            check=True,
            capture_output=True,
            text=True,
            errors="surrogateescape",
        )
        return ran.stdout.strip()

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
