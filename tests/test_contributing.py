"""The examples of CONTRIBUTING.md, done to the letter in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fakes.patience import PATIENCE

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
# The tests that the page names, and those that look at whole tables.
TESTS = ("tests/test_config_example.py", "tests/test_layout.py")
# What the page names as examples: nothing that it says to do can break them.
MODELS = {
    "tests/dialects/ollama/test_answer.py",
    "tests/e2e/test_trial_dialect.py",
    "tests/features/test_trial_feature.py",
}
# Large input costs what it did: nothing on the page can change that.
SMALL = "not linear and not tiny_chunks"


def examples() -> dict[str, str]:
    """Return the sections of the page that have a diff, by their heading."""
    sections = re.split(r"^## ", PAGE, flags=re.M)[1:]
    return {s.partition("\n")[0]: s for s in sections if "```diff" in s}


def diffs(section: str) -> list[tuple[str, bool, list[str]]]:
    """Return the parts of a section's diff: a file, whether it is new, its lines."""
    (block,) = re.findall(r"^```diff\n(.*?)^```$", section, re.M | re.S)
    parts = re.split(r"^([ +])# ([\w/.-]+\.\w+)\n", block, flags=re.M)[1:]
    heads = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [(file, sign == "+", text.splitlines()) for sign, file, text in heads]


def copies(section: str) -> list[tuple[str, str]]:
    """Return the folders that a section says to copy, each with its new place."""
    return re.findall(r"^    cp -r (\S+) (\S+)$", section, re.M)


def apply(root: Path, section: str) -> set[str]:
    """Do what a section says below `root`; return the files it says to touch."""
    touched = set()
    for source, target in copies(section):
        shutil.copytree(root / source, root / target)
        touched |= {str(f.relative_to(root)) for f in (root / target).glob("*.py")}
    for file, is_new, lines in diffs(section):
        path = root / file
        touched.add(file)
        if is_new:
            assert not path.exists(), file
            path.write_text("".join(f"{line[1:]}\n" for line in lines), "utf-8")
        else:
            path.write_text(patched(path.read_text("utf-8"), lines), "utf-8")
    return touched


def patched(text: str, diff: list[str]) -> str:
    """Return a text after a diff whose kept lines need not follow each other."""
    old, new = text.splitlines(keepends=True), list[str]()
    at, first = 0, list[str]()
    for line in diff:
        if line.startswith("+"):
            (new if at else first).append(f"{line[1:]}\n")
        elif line:
            there = old.index(f"{line[1:]}\n", at)
            new += [*old[at:there], *first, *old[there : there + line.startswith(" ")]]
            at, first = there + 1, []
    return "".join([*new, *old[at:]])


@pytest.mark.parametrize("name", examples())
def test_an_example_says_how_many_files_it_touches(name: str) -> None:
    section = examples()[name]
    folders = [ROOT / source for source, _ in copies(section)]
    files = len(diffs(section)) + sum(len([*f.glob("*.py")]) for f in folders)
    told = re.search(r"\bFiles: (\d+)\.", section)
    assert told and int(told[1]) == files


@pytest.mark.slow
def test_whoever_follows_the_examples_succeeds(tmp_path: Path) -> None:
    copy_project(tmp_path)
    named = set(TESTS)
    for section in examples().values():
        touched = apply(tmp_path, section)
        named |= {file for file in touched if "/test_" in file}
        named |= set(re.findall(r"`(tests/[\w/]*test_\w+\.py)`", section))
    run(tmp_path, "scripts/generate_docs.py")
    if find_spec("ruff"):  # `scripts/check` installs it
        run(tmp_path, "-m", "ruff", "check", "--no-cache", "byok", "tests")
    few = ("--hypothesis-profile", "quick", "-p", "no:cacheprovider", "-k", SMALL)
    run(tmp_path, "-m", "pytest", "-q", *few, *sorted(named - MODELS))


def copy_project(root: Path) -> None:
    """Copy the files of the project, which are known to git, into a repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        file = ROOT / name
        if file.exists():
            compiled = file.parent.glob(f"__pycache__/{file.stem}.*.pyc")
            for path in [file, *compiled]:  # the latter hold the time of the former
                copy = root / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)
    for arguments in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *arguments], cwd=root, check=True)


def run(root: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=12 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
