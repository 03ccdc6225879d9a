"""An upgrade by hand: an older byok writes a data folder, this one opens it.

`python -m tools.upgrade OLD_PYTHON WORKSPACE [KILLS]` starts the daemon of
another byok (a Python in whose environment it is installed), uploads files, makes a
checkpoint and asks questions. Then it starts this byok on the same folder, asks the
same and compares. With KILLS that many starts are killed at random moments; a folder
that is migrated by then is put back to the old one, or goes on to be killed again.
"""

import hashlib
import itertools
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from byok.core.daemon.challenge import derive_owner_token
from tests.fakes.program import ROOT

_READY = re.compile(rb"http://127\.0\.0\.1:(\d+)")
_PATHS = re.compile(r"^Path: (.+)$", re.MULTILINE)
_UPLOADS = 300
_SUFFIXES = (".py", ".js", ".ts", ".md", ".rs", ".go", ".c", ".h", ".java")
_QUESTIONS = (
    "where are blobs written in batches",
    "how is the upstream chosen for a model",
    "redact secrets from the log",
    "parse server sent events",
    "sqlite database transaction",
    "read the ignore files of a repository",
    "token bucket limit",
    "watch a folder for changes",
)


@dataclass
class Daemon:
    """A running daemon."""

    port: int
    token: str

    def ask(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def wait(self) -> float:
        """Wait until everything is searchable; return the seconds."""
        began = time.monotonic()
        while True:
            status = self.ask("/byok/index/status", {})
            phases = {space["phase"] for space in status["workspaces"]}
            if phases == {"complete"} and status["state"] == "indexed":
                return time.monotonic() - began
            time.sleep(0.05)


@contextmanager
def starting(
    python: str, home: Path, cwd: Path, *options: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a daemon with the given home folder, and end it with the block."""
    command = [python, "-m", "byok", "serve", "--upstream", "demo", "--port", "0"]
    with subprocess.Popen(
        [*command, *options], cwd=cwd, env={**os.environ, "BYOK_HOME": str(home)},
        stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def daemon(python: str, home: Path, cwd: Path, *options: str) -> Iterator[Daemon]:
    """Run a daemon until the block ends."""
    with starting(python, home, cwd, *options) as process:
        assert process.stdout is not None
        match = None
        while not match:
            line = process.stdout.readline()
            assert line, "the daemon ended"
            match = _READY.search(line)
        yield Daemon(int(match[1]), _token(home / "state"))


def _token(state: Path) -> str:
    """Return the token that commands send; older versions have only the clients'."""
    secret = state / "owner-secret"
    if not secret.exists():
        return (state / "token").read_text().strip()
    record = json.loads((state / "daemon.json").read_bytes())
    secret_text = secret.read_text().strip()
    return derive_owner_token(secret_text, record["port"], record["instance"])


def uploads_of(folder: Path) -> list[dict[str, str]]:
    """Return some files as a client uploads them, with the prefix `up/`."""
    files = (p for p in sorted(folder.rglob("*")) if p.suffix in _SUFFIXES)
    blobs = []
    for path in itertools.islice(files, _UPLOADS):
        content = path.read_text("utf-8", "replace")
        name = f"up/{path.relative_to(folder).as_posix()}"
        digest = hashlib.sha256((name + content).encode()).hexdigest()
        blobs.append({"blob_name": digest, "path": name, "content": content})
    return blobs


def upload(target: Daemon, blobs: list[dict[str, str]]) -> str:
    """Upload in batches, and create a checkpoint of every second blob."""
    for start in range(0, len(blobs), 100):
        target.ask("/batch-upload", {"blobs": blobs[start : start + 100]})
    names = sorted(blob["blob_name"] for blob in blobs)[::2]
    body = {"checkpoint_id": None, "added_blobs": names, "deleted_blobs": []}
    checkpoint = target.ask("/checkpoint-blobs", {"blobs": body})
    return str(checkpoint["new_checkpoint_id"])


def answers(target: Daemon, names: list[str], checkpoint: str) -> dict[str, Any]:
    """Return the files found for each question, and the missing blobs."""
    results: dict[str, Any] = {}
    for question in _QUESTIONS:
        hits = target.ask("/byok/search", {"query": question, "limit": 20})
        results[f"search: {question}"] = _files(hits)
        blobs = {"checkpoint_id": checkpoint, "added_blobs": [], "deleted_blobs": []}
        body = {"information_request": question, "blobs": blobs, "dialog": []}
        text = target.ask("/agents/codebase-retrieval", body)["formatted_retrieval"]
        results[f"checkpoint: {question}"] = _PATHS.findall(text)
    results["missing"] = target.ask("/find-missing", {"mem_object_names": names})
    return results


def _files(hits: Any) -> list[str]:
    return [str(hit["path"]) for hit in hits.get("hits", hits.get("results", []))]


def compare(python: str, workspace: Path, home: Path, kills: int = 0) -> None:
    """Write with the old byok, open with this one, and print the differences.

    Answers of another version may differ because it splits files differently. So they
    are also compared with those of this version in a home that it filled itself.
    """
    blobs = uploads_of(workspace)
    names = [blob["blob_name"] for blob in blobs]
    options = ("--workspace", str(workspace))

    def fill(target: Daemon) -> str:
        target.wait()
        checkpoint = upload(target, blobs)
        target.wait()
        return checkpoint

    with daemon(python, home, home.parent, *options) as old:
        checkpoint = fill(old)
        before = answers(old, names, checkpoint)
    if kills:
        print(kill_starts(home, kills, options))
    with daemon(sys.executable, home, ROOT, *options) as new:
        at_once = answers(new, names, checkpoint)
        seconds = new.wait()
        after = answers(new, names, checkpoint)
    with daemon(sys.executable, home.with_name("fresh"), ROOT, *options) as new:
        fresh = answers(new, names, fill(new))
    print(f"{len(blobs)} uploads; all indexed again after {seconds:.1f} s")
    for key, old_files in before.items():
        marks = [_mark(old_files, results[key]) for results in (at_once, after)]
        print(f"at once {marks[0]}, later {marks[1]}, later and fresh "
              f"{_mark(after[key], fresh[key])}: {key}")  # fmt: skip
    print("data folder:", sorted(path.name for path in (home / "data").iterdir()))


def kill_starts(home: Path, kills: int, options: tuple[str, ...]) -> str:
    """Kill starts of this byok on a data folder; report the versions that they left."""
    saved = home.with_name("saved")
    shutil.copytree(home, saved)
    rng = random.Random(1)
    versions: Counter[str] = Counter()
    for _ in range(kills):
        with starting(sys.executable, home, ROOT, *options) as process:
            until = time.monotonic() + 60
            while not _is_migrating(home) and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(rng.choice([0, rng.uniform(0, 0.1), rng.uniform(0, 2)]))
            process.kill()
        uri = f"file:{home / 'data' / 'data.db'}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
        versions[f"version {version}"] += 1
        if version > 1 and rng.random() < 0.7:
            shutil.rmtree(home)
            shutil.copytree(saved, home)
    return f"{kills} kills left {dict(versions)}"


def _is_migrating(home: Path) -> bool:
    """Tell whether the backup copy was started, which is the first step."""
    return any((home / "data").glob("data.db.v1-*"))


def _mark(first: Any, second: Any) -> str:
    if first == second:
        return "same"
    if sorted(first) == sorted(second):
        return "another order"
    return f"{len(set(first) & set(second))} of {len(set(first))}"


def main(arguments: list[str]) -> None:
    """Compare in a home folder that is removed afterwards."""
    python, workspace, *kills = arguments
    with TemporaryDirectory() as folder:
        compare(python, Path(workspace), Path(folder) / "home", *map(int, kills))


if __name__ == "__main__":
    main(sys.argv[1:])
