"""Write the table of known models from a public list: scripts/known_models.

The list is part of LiteLLM (MIT licence), in a wheel whose version and hash are pinned
here; to renew the table, change all three values of `SOURCE`. The wheel is downloaded
into a temporary folder and not installed. byok/dialects/known_models.py explains the
table, and reads newer lists for `byok models update`.
"""

import argparse
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from subprocess import run

import orjson

from byok.dialects.known_models import read_litellm, write_table

TABLE = Path(__file__).parent.parent / "byok" / "dialects" / "known_models.json"
MAX_BYTES = 160 * 1024
_MEMBER = "litellm/model_prices_and_context_window_backup.json"
_LICENCE = "MIT License, Copyright (c) 2023 Berri AI"


@dataclass(frozen=True, slots=True)
class Source:
    """A published version of the list: when it was published, and its wheel's hash."""

    version: str
    day: str
    sha256: str


SOURCE = Source(
    "1.109.1",
    "2026-11-12",
    "1c8b4dd671fa0cd0850aa751678704ff77e595fb1e6085b2dc3be39ee19bdaaf",
)


def main(argv: list[str]) -> int:
    """Write the table; the exit code is 1 if it is too large."""
    parser = argparse.ArgumentParser(prog="scripts/known_models")
    parser.add_argument("--wheel", type=Path, help="use this file, download nothing")
    parser.add_argument("--table", type=Path, default=TABLE)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        wheel = options.wheel or download(SOURCE, Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            listed = orjson.loads(archive.read(_MEMBER))
    content = write_table(
        read_litellm(listed),
        source=f"LiteLLM {SOURCE.version}",
        licence=_LICENCE,
        day=date.fromisoformat(SOURCE.day),
    )
    rows = sum(map(len, orjson.loads(content)["vendors"].values()))
    print(f"{rows} rows, {len(content)} bytes")
    if len(content) > MAX_BYTES:
        print(f"The table may have {MAX_BYTES} bytes at most.", file=sys.stderr)
        return 1
    options.table.write_bytes(content)
    return 0


def download(source: Source, folder: Path) -> Path:
    """Download the wheel of one platform; pip compares its hash."""
    requirements = folder / "wanted.txt"
    pinned = f"litellm=={source.version} --hash=sha256:{source.sha256}\n"
    requirements.write_text(pinned, "utf-8")
    run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"),
            *(
                "--require-hashes",
                "--dest",
                str(folder),
                "--requirement",
                str(requirements),
            ),
        ],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
