"""scripts/release: build what is published, and install it as a user would.

Into an empty folder (`dist`) go the wheel, the source distribution, the requirements
with their hashes, a bill of materials (CycloneDX), and the checksums of all of them.
The wheel is then installed into an empty environment of every Python that is found
here, and runs there. Nothing is uploaded.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
WHEEL_LIMIT, ENVIRONMENT_LIMIT = 1.7, 290.0  # MiB
_MIB = 2**20
_READY = "byok is listening on "
_BUILDERS = ("hatchling", "cyclonedx-bom>=7", "zopflipy>=1.11")
# Deflate as any installer reads it, 3 % smaller than zlib makes it.
_REPACK = """
import sys, zipfile, zopfli
with zipfile.ZipFile(sys.argv[1]) as wheel:
    parts = [(part, wheel.read(part)) for part in wheel.infolist()]
with zopfli.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as wheel:
    for part, content in parts:
        wheel.writestr(part, content)
"""
_INSTALLERS = ("pip", "setuptools")  # of the environment, not of byok


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, install, run; 1 if something is too large or does not work."""
    parser = argparse.ArgumentParser(prog="scripts/release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--tag", default="", help="refuse another version, like v1.2.0")
    options = parser.parse_args(arguments)
    version = subprocess.run(
        [sys.executable, "-m", "byok", "version"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()[1]  # fmt: skip
    if options.tag not in ("", f"v{version}"):
        parser.error(f"the tag is {options.tag}, the version {version}")
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.iterdir()):
        parser.error(f"{options.out} is not empty")
    problems = list(_make(options.out))
    for problem in problems:
        print(f"problem: {problem}", file=sys.stderr)
    return int(bool(problems))


def _make(out: Path) -> Iterator[str]:
    """Build everything, and yield the problems."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        builder = _environment(Path(sys.executable), scratch / "builder")
        _pip(builder, "install", *_BUILDERS)
        _run(str(builder), "-m", "hatchling", "build", "-d", str(out))
        [wheel] = out.glob("*.whl")
        _run(str(builder), "-c", _REPACK, str(wheel))
        size = wheel.stat().st_size / _MIB
        _report(f"{wheel.name}: {size:.2f} MiB")
        if size > WHEEL_LIMIT:
            yield f"the wheel has {size:.2f} MiB"
        report = scratch / "report.json"
        resolving = ("--dry-run", "--ignore-installed", "--report", str(report))
        _pip(builder, "install", *resolving, str(wheel))
        (out / "requirements.txt").write_text(
            requirements(json.loads(report.read_text("utf-8"))), "utf-8"
        )
        for name in (f"python{version}" for version in VERSIONS):
            if not (python := _find_python(name)):
                _report(f"{name}: not here")
                continue
            installed = _environment(python, scratch / name)
            _pip(installed, "install", str(wheel))
            yield from _check(name, installed, scratch / f"home-{name}")
            if not (out / "sbom.json").exists():
                _describe(builder, installed, out / "sbom.json")
    sums = [f"{_sha256(file)}  {file.name}\n" for file in sorted(out.iterdir())]
    (out / "SHA256SUMS").write_text("".join(sums), "utf-8")


def requirements(report: dict[str, Any]) -> str:
    """Write the packages that pip would install, with version and hash, without URLs.

    `report` is that of `pip install --report`; the wheel of this project is left out.
    """
    lines = [
        f"{item['metadata']['name']}=={item['metadata']['version']} "
        f"--hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}\n"
        for item in report["install"]
        if not item.get("requested")
    ]
    return "".join(sorted(lines, key=str.lower))


def _check(name: str, python: Path, home: Path) -> Iterator[str]:
    """Run an installed byok: its version, and the demo until it is healthy."""
    size = _size_of(python.parent.parent)
    _report(f"{name}: {size:.0f} MiB")
    if size > ENVIRONMENT_LIMIT:
        yield f"the environment of {name} has {size:.0f} MiB"
    byok = python.with_name("byok")
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "BYOK_HOME": str(home)}
    home.mkdir()
    _run(str(byok), "version", environ=variables, cwd=home)
    serve = [str(byok), "serve", "--upstream", "demo", "--port", "0"]
    with subprocess.Popen(
        serve, env=variables, cwd=home, stdout=subprocess.PIPE, text=True
    ) as daemon:
        try:
            line = daemon.stdout.readline() if daemon.stdout else ""
            if not line.startswith(_READY):
                yield f"{name}: byok serve said {line!r}"
                return
            address = line.removeprefix(_READY).strip()
            with urllib.request.urlopen(f"{address}/health", timeout=10) as answer:
                if json.load(answer) != {"status": "ok"}:
                    yield f"{name}: byok is not healthy"
        finally:
            daemon.terminate()


def _describe(builder: Path, installed: Path, out: Path) -> None:
    """Write the bill of materials of an environment, without pip or local paths."""
    _pip(installed, "uninstall", "--yes", *_INSTALLERS)
    command = ("-m", "cyclonedx_py", "environment", "--output-reproducible")
    _run(str(builder), *command, "--output-file", str(out), str(installed))
    bill = json.loads(out.read_text("utf-8"))
    for part in bill["components"]:
        links = part.get("externalReferences", [])
        links[:] = [link for link in links if not link["url"].startswith("file:")]
    out.write_text(json.dumps(bill, indent=2) + "\n", "utf-8")


def _size_of(environment: Path) -> float:
    """Return the MiB that `uv tool install` would write: no pip, nothing compiled."""
    left_out, total = {*_INSTALLERS, "__pycache__"}, 0
    for folder, folders, names in os.walk(environment):
        folders[:] = [name for name in folders if name not in left_out]
        total += sum((Path(folder) / name).lstat().st_size for name in names)
    return total / _MIB


def _find_python(name: str) -> Path | None:
    """Return the executable of a Python; None if there is none, or only a shim."""
    path = shutil.which(name)
    if not path:
        return None
    command = [path, "-c", "import sys; print(sys.executable)"]
    result = subprocess.run(command, capture_output=True, text=True)
    return Path(result.stdout.strip()) if result.returncode == 0 else None


def _environment(python: Path, folder: Path) -> Path:
    _run(str(python), "-m", "venv", str(folder))
    return folder / "bin" / "python"


def _pip(python: Path, *arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    _run(str(python), "-m", "pip", *arguments[:1], *quiet, *arguments[1:])


def _run(
    *command: str, environ: dict[str, str] | None = None, cwd: Path = ROOT
) -> None:
    subprocess.run(command, check=True, cwd=cwd, env=environ, stdout=sys.stderr)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
