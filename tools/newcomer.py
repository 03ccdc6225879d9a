"""Walk the newcomer's path on a fresh clone, and print its commands and seconds.

`python -m tools.newcomer [REPOSITORY] [--cold]` clones the repository into a temporary
folder, starts byok there with the demo, and asks it through the SDK. `--cold` gives pip
an empty cache. The README's "Two commands" are the first steps.
"""

import argparse
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
READY = "byok is listening on "
_SECONDS = 1800.0
_ASK = (
    "import os; from auggie_sdk.context.internal.api_client import *; "
    "options = ContextAPIClientOptions(api_key=os.environ['AUGMENT_API_TOKEN'], "
    "api_url=os.environ['AUGMENT_API_URL']); "
    "print(ContextAPIClient(options).chat('Hello!'))"
)
SERVE = "scripts/serve --upstream demo"
SDK = ".venv/bin/python -m pip install --quiet auggie-sdk"
ASK = f'eval "$(.venv/bin/byok connect sdk)" && .venv/bin/python -c "{_ASK}"'


class Step(NamedTuple):
    """A command that a newcomer types, how long it took, and what it printed last."""

    command: str
    seconds: float
    last_line: str


def walk(
    repository: str,
    folder: Path,
    environ: Mapping[str, str],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Step]:
    """Walk the path in an empty folder; the daemon ends with the last step.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    clone, start = folder / "byok", clock()
    command = f"git clone {repository} byok"
    _run(("git", "clone", "--quiet", repository, str(clone)), folder, environ)
    yield Step(command, clock() - start, "")
    start = clock()
    with _serving(clone, environ) as ready:
        yield Step(SERVE, clock() - start, ready)
        for command in (SDK, ASK):
            start = clock()
            output = _run(("bash", "-c", command), clone, environ)
            yield Step(command, clock() - start, (output.splitlines() or [""])[-1])


def _run(command: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> str:
    result = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_SECONDS,
        check=True,
    )
    return result.stdout


@contextmanager
def _serving(clone: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Run the daemon as in a second terminal; yield its ready line."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {SERVE}"],
        cwd=clone,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline().strip()
        if not ready.startswith(READY):
            raise subprocess.CalledProcessError(process.wait(), SERVE)
        yield ready
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def main() -> None:
    """Walk the path and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", nargs="?", default=str(ROOT))
    parser.add_argument("--cold", action="store_true", help="an empty cache of pip")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="byok-newcomer-") as name:
        folder = Path(name)
        environ = {
            **{n: v for n, v in os.environ.items() if not n.startswith("BYOK_")},
            "BYOK_HOME": str(folder / "home"),
            "BYOK_SERVER__PORT": "0",
        }
        if options.cold:
            environ["PIP_CACHE_DIR"] = str(folder / "pip")
        total, count = 0.0, 0
        for step in walk(options.repository, folder, environ):
            print(f"{step.seconds:7.1f} s  {step.command[:70]}  {step.last_line[:60]}")
            total, count = total + step.seconds, count + 1
    print(f"{total:7.1f} s  {count} commands to the first answer")


if __name__ == "__main__":
    main()
