"""Fuzz byok: python -m tools.fuzz [TARGET...] [--minutes N] [--list]."""

import argparse
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
# Name of a module here -> packages whose coverage guides it.
TARGETS: dict[str, list[str]] = {
    "sse": ["byok"],
    "toolcalls": ["byok"],
    "ndjson": ["byok"],
    "chat": ["byok"],
    "schema": ["byok"],
    "splice": ["byok"],
    "config": ["byok", "tomllib"],
    "http": ["byok", "aiohttp.http_parser", "aiohttp.web_protocol"],
    "redactor": ["byok"],
    "surface": [],  # schemathesis makes its inputs
}
_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")


def main() -> int:
    """Run the targets one after the other, each in a process of its own."""
    options = _options()
    if options.child:
        _child(options.child, Path(options.folder), options.minutes * 60)
    if options.list:
        for name in TARGETS:
            print(f"{name:10} {_about(name)}")
        return 0
    findings = 0
    for name in options.targets or TARGETS:
        findings += _run(name, Path(options.folder) / name, options.minutes)
    return 1 if findings else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--minutes", type=float, default=1, help="CPU time of each")
    parser.add_argument("--list", action="store_true", help="list the targets")
    parser.add_argument(
        "--folder",
        default=os.environ.get("BYOK_FUZZ", str(_ROOT / ".fuzz")),
        help="where corpora and findings are kept (BYOK_FUZZ)",
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target: {', '.join(unknown)}; see --list")
    return options


def _about(name: str) -> str:
    source = (Path(__file__).parent / f"{name}.py").read_text("utf-8")
    return source.splitlines()[0].strip('"')


def _child(name: str, folder: Path, seconds: float) -> None:
    if TARGETS[name]:
        from tools.fuzz.engine import fuzz

        fuzz(name, TARGETS[name], folder, seconds)
    module: Any = importlib.import_module(f"tools.fuzz.{name}")
    result = json.dumps(module.hunt(seconds), indent=1)
    (folder / "result.json").write_text(result)
    sys.exit(0)


def _run(name: str, folder: Path, minutes: float) -> int:
    """Run one target; return the number of its findings."""
    needed = "atheris" if TARGETS[name] else "schemathesis"
    if importlib.util.find_spec(needed) is None:
        print(f"{name}: left out, {needed} has no build for this Python or system")
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").unlink(missing_ok=True)
    started = time.monotonic()
    log = folder / "log.txt"
    with tempfile.TemporaryDirectory() as home, log.open("wb") as output:
        result = subprocess.run(
            [
                *(sys.executable, "-m", "tools.fuzz", "--child", name),
                *("--folder", str(folder), "--minutes", str(minutes)),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=_ROOT,
            env={
                **_environment(),
                "BYOK_HOME": home,
                "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            },
            check=False,
        )
    return _report(name, folder, log, result.returncode, time.monotonic() - started)


def _environment() -> dict[str, str]:
    """Return the environment without variables that byok or a client reads."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("BYOK_") and not name.endswith(("_API_KEY", "_TOKEN"))
    }


def _report(name: str, folder: Path, log: Path, code: int, wall: float) -> int:
    text = log.read_text("utf-8", "replace")
    result = folder / "result.json"
    if not result.exists():
        print(f"{name}: died with code {code} after {wall:.0f} s, see {log}")
        print("\n".join(text.splitlines()[-8:]))
        return 1
    facts = json.loads(result.read_text())
    covered = _COVERAGE.findall(text)
    figures = "edges {}, features {}, corpus {}".format(*covered[-1]) if covered else ""
    print(
        f"{name}: {facts['executions']:,} executions in "
        f"{facts['cpu_seconds'] / 60:.1f} CPU minutes ({wall / 60:.1f} on the clock)"
        f"; {len(facts['findings'])} findings{'; ' + figures if figures else ''}",
        flush=True,
    )
    for key, value in facts["facts"].items():
        print(f"  {key}: {value}")
    for finding in facts["findings"]:
        print(f"  FOUND {finding['place']}: {finding['text']}")
        print(f"        {finding['input'][:400]}")
    return len(facts["findings"])


if __name__ == "__main__":
    sys.exit(main())
