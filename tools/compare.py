"""scripts/compare: grade byok against recorded streams of one kind of API.

It starts the replay server of the recordings and a daemon with a home of its own, and
runs their compare.py, which prints `N/M exact`; what it expects of native APIs is first
put in its own terms (compare_terms.py). Options that are not listed here go to
compare.py: `-v`, `--faults split=7,crlf`, `--expect-error`, `--only TEXT`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fakes.daemon import running
from tests.fakes.replay import answering, bytes_of, recorded, replaying
from tools.compare_terms import (
    answers_in,
    complete_expectation,
    in_common_terms,
    is_empty,
    without_usage,
)

_ROOT = Path(__file__).parents[1]
# For each kind of recordings the dialect that reads them, and the path of its base URL.
KINDS = {
    "chat_stream": ("openai_chat", "/v1"),
    "anthropic_stream": ("anthropic", "/v1"),
    "responses_stream": ("openai_responses", "/v1"),
    "gemini_stream": ("gemini", "/v1beta"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade one kind; return 1 for any difference, 2 without recordings."""
    options, grader_options = _parser().parse_known_args(arguments)
    shared = Path(options.shared)
    if not (shared / "streams" / "compare.py").is_file():
        print(
            f"There are no recorded streams in {shared / 'streams'}. Set BYOK_SHARED "
            "to the folder that has streams/ with compare.py and replay.py.",
            file=sys.stderr,
        )
        return 2
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        replaying(shared) as replay,
    ):
        os.environ["BYOK_HOME"] = home
        os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
        manifest = _write_manifest(shared, options.kind, Path(home))
        grader_options = ["--manifest", str(manifest), *grader_options]
        return asyncio.run(_grade(shared, replay, options.kind, grader_options))


def settings_for(kind: str, replay: str) -> dict[str, Any]:
    """Return settings in which the upstream `replay` serves one kind."""
    dialect, path = KINDS[kind]
    upstream = {"dialect": dialect, "base_url": replay + path, "timeout": 60}
    return {"upstreams": {"replay": upstream}}


def _write_manifest(shared: Path, kind: str, folder: Path) -> Path:
    """Write the lines of one kind, and say how many cannot be graded."""
    rows = []
    for item in recorded(shared, kind):
        body = bytes_of(shared, item)
        row = complete_expectation(item, body)
        is_other = answers_in(body) > 1 or is_empty(row)
        rows.append(without_usage(row) if is_other else row)
    if blank := sum(1 for row in rows if not row.get("expected")):
        print(f"{blank} of {len(rows)} recordings have nothing to compare with")
    manifest = folder / "manifest.jsonl"
    lines = (json.dumps(in_common_terms(row)) + "\n" for row in rows)
    manifest.write_text("".join(lines), "utf-8")
    return manifest


async def _grade(
    shared: Path, replay: str, kind: str, grader_options: Sequence[str]
) -> int:
    await answering(f"{replay}/_faults")
    async with running(settings_for(kind, replay)) as editor:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(shared / "streams" / "compare.py")),
            *("--byok", editor.daemon.url, "--token", editor.token),
            *("--upstream", "replay", "--kind", kind, *grader_options),
        )
        return await process.wait()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/compare", description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="chat_stream")
    parser.add_argument(
        "--shared",
        default=os.environ.get("BYOK_SHARED", str(_ROOT.parent / "shared")),
        help="the folder with streams/ (BYOK_SHARED)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
