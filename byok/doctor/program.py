"""Checks of the program itself: its packages, ripgrep, and the parsers of code."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path

from byok import __version__
from byok.doctor.background import in_background
from byok.doctor.results import CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.index.parse.worker_pool import Pool, WorkersUnavailable
from byok.index.types import ParseJob
from byok.platform.programs import clean_environment, find_program

# What other checks do not load anyhow, or what is asked for when a bug is reported.
PACKAGES = (
    *("aiohttp", "httpx", "keyring", "orjson", "pydantic", "PyStemmer", "tantivy"),
    *("tree-sitter", "tree-sitter-language-pack", "truststore", "watchfiles"),
)
_AGAIN = "Install byok again, in an environment of its own: pipx install ."
_APT = "sudo snap remove ripgrep; sudo apt install ripgrep"
_RIPGREP = "Install ripgrep, such as: apt install ripgrep, or brew install ripgrep"
_SECONDS = 5.0
_SAMPLES = {  # a definition in languages of different grammars
    "sample.py": b"def find_me():\n    return 1\n",
    "sample.ts": b"export function findMe(): number {\n  return 1;\n}\n",
    "sample.go": b"package sample\n\nfunc FindMe() int {\n\treturn 1\n}\n",
}


def versions() -> dict[str, str]:
    """Return the versions of byok, Python, system and packages; "" for missing ones."""
    found = {
        "byok": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    return found | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


async def check_versions(around: Surroundings, about: str) -> CheckResult:
    """Check that the packages that matter are there."""
    del around, about
    found = await in_background(versions)
    if missing := [name for name in PACKAGES if not found[name]]:
        return wrong(f"packages are missing: {', '.join(missing)}", _AGAIN)
    return good(f"byok {found['byok']}, Python {found['python']}, {found['system']}")


async def check_ripgrep(around: Surroundings, about: str) -> CheckResult:
    """Check that ripgrep is found where byok looks for it, and searches."""
    del about
    program = find_program("rg", path=around.environ.get("PATH"))
    if program is None:
        return doubtful(
            "it is not in PATH: nothing is found until an index is built", _RIPGREP
        )
    failure = await in_background(lambda: _try_ripgrep(program))
    if failure:
        return wrong(f"{program} {failure}", _RIPGREP)
    if await in_background(lambda: _is_snap(program)):
        # It needs privileges to start, which byok's service can never gain.
        return doubtful(f"{program} is a snap, which the service cannot start", _APT)
    return good(program)


def _is_snap(program: str) -> bool:
    return program.startswith("/snap/") or Path(program).resolve().name == "snap"


def _try_ripgrep(program: str) -> str:
    """Let it search three lines; return what went wrong."""
    try:
        done = subprocess.run(  # noqa: S603 - from the user's PATH
            [program, "--no-config", "--json", "--fixed-strings", "needle", "-"],
            input=b"hay\na needle\nhay\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"does not answer within {_SECONDS:g} s"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    found = done.returncode == 0 and b'"type":"match"' in done.stdout
    return "" if found else f"does not find a word (exit {done.returncode})"


async def check_parsers(around: Surroundings, about: str) -> CheckResult:
    """Check that a parser process starts, and finds definitions."""
    del around, about
    return await in_background(_check_parsers)


def _check_parsers() -> CheckResult:
    jobs = [
        ParseJob(number, path, content=content)
        for number, (path, content) in enumerate(_SAMPLES.items())
    ]
    pool = Pool(1, limit=_SECONDS)
    try:
        outcomes = [*pool.prepare(jobs)]
    except WorkersUnavailable as error:
        return wrong(str(error), "Raise the limit of processes (ulimit -u)")
    finally:
        pool.close()
    lost = [
        outcome.job.path
        for outcome in outcomes
        if outcome.plain
        or outcome.prepared is None
        or not any(document.symbols for document in outcome.prepared.documents)
    ]
    if lost:
        return wrong(f"nothing is found in {', '.join(sorted(lost))}", _AGAIN)
    return good(f"a parser process found definitions in {len(outcomes)} languages")
