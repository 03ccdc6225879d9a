"""Write byok/known_models.json from a public list of models: scripts/known_models.

The list is part of LiteLLM (MIT licence), in a wheel whose version and hash are pinned
here; to renew the table, change all three values of `SOURCE`. The wheel is downloaded
into a temporary folder and not installed. byok itself never fetches anything.

The table is `{"source", "licence", "date", "vendors": {PRESET: {MODEL: ROW}}}`. A row
is an array without its last unknown values: the context window, the longest answer, a
letter for each known fact (`FLAGS` in byok/dialects/known_models.py), the efforts, and
the prices in US dollars per million tokens of input, output, cache reads and cache
writes. Where two rows are about one model, the lower limit and the higher price count.
"""

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import run
from typing import Any

import orjson

from byok.dialects.efforts import EFFORTS
from byok.dialects.known_models import FLAGS, RESPONSES_ONLY

TABLE = Path(__file__).parent.parent / "byok" / "known_models.json"
MOST_BYTES = 160 * 1024
_MEMBER = "litellm/model_prices_and_context_window_backup.json"


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
# Presets by the names that the list has for vendors.
VENDORS = {
    **{
        name: name
        for name in (
            *("openai", "azure", "anthropic", "gemini", "deepseek", "mistral"),
            *("moonshot", "zai", "minimax", "xai", "dashscope", "groq", "cerebras"),
            *("nebius", "novita", "sambanova", "volcengine", "bigmodel", "perplexity"),
            *("deepinfra",),
        )
    },
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "bedrock_mantle": "bedrock",
    "vercel_ai_gateway": "vercel",
    "xiaomi_mimo": "mimo",
}
_CHATS = ("chat", "responses")
_FACTS = {
    "images": "supports_vision",
    "tools": "supports_function_calling",
    "thinking": "supports_reasoning",
    "sampling": "supports_sampling_params",
    "adaptive_thinking": "supports_adaptive_thinking",
}
_PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
_SIZES = 4  # values before the prices
_GRADED = {"none", "minimal", "xhigh", "max"}


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
    content = write_table(listed, SOURCE)
    rows = sum(map(len, orjson.loads(content)["vendors"].values()))
    print(f"{rows} rows, {len(content)} bytes")
    if len(content) > MOST_BYTES:
        print(f"The table may have {MOST_BYTES} bytes at most.", file=sys.stderr)
        return 1
    options.table.write_bytes(content)
    return 0


def download(source: Source, folder: Path) -> Path:
    """Download the wheel of one platform; pip compares its hash."""
    wanted = folder / "wanted.txt"
    pinned = f"litellm=={source.version} --hash=sha256:{source.sha256}\n"
    wanted.write_text(pinned, "utf-8")
    run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--platform", "manylinux_2_28_x86_64", "--only-binary", ":all:"),
            *("--require-hashes", "--dest", str(folder), "--requirement", str(wanted)),
        ],
        check=True,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def write_table(listed: Mapping[str, Any], source: Source) -> bytes:
    """Return the table as JSON, one line for each vendor."""
    vendors: dict[str, dict[str, list[Any]]] = {}
    for vendor, model, row in _rows_of(listed):
        rows = vendors.setdefault(vendor, {})
        rows[model] = _merge(rows[model], row) if model in rows else row
    lines = (
        b"%b:%b" % (orjson.dumps(vendor), orjson.dumps(_trimmed(rows)))
        for vendor, rows in sorted(vendors.items())
    )
    head = {
        "source": f"LiteLLM {source.version}",
        "licence": "MIT License, Copyright (c) 2023 Berri AI",
        "date": source.day,
    }
    start = orjson.dumps(head)[:-1]
    return start + b',"vendors":{\n' + b",\n".join(lines) + b"\n}}\n"


def _rows_of(listed: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    for name, given in listed.items():
        vendor = VENDORS.get(given.get("litellm_provider", ""))
        if vendor is None or given.get("mode") not in _CHATS:
            continue
        prefix = f"{given['litellm_provider']}/"
        model = name.removeprefix(prefix)
        if _is_wanted(vendor, model):
            yield vendor, model, _row(given)


def _is_wanted(vendor: str, model: str) -> bool:
    """Leave out fine-tunes, Azure's regions and Fireworks' second names."""
    if model.startswith("ft:") or (vendor == "azure" and "/" in model):
        return False
    return vendor != "fireworks" or model.startswith("accounts/")


def _row(given: Mapping[str, Any]) -> list[Any]:
    prices = [given.get(name) for name in _PRICES]
    return [
        _count(given.get("max_input_tokens")),
        _count(given.get("max_output_tokens")),
        _flags(given),
        " ".join(_efforts(given)),
        *(None if p is None else round(p * 1e6, 6) for p in prices),
    ]


def _count(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else 0


def _flags(given: Mapping[str, Any]) -> str:
    said = ((letter, given.get(_FACTS[fact])) for letter, fact in FLAGS.items())
    letters = [x.upper() if yes else x for x, yes in said if yes is not None]
    endpoints = given.get("supported_endpoints") or ()
    needs_responses = "/v1/responses" in endpoints and (
        "/v1/chat/completions" not in endpoints
    )
    return "".join(letters) + (RESPONSES_ONLY if needs_responses else "")


def _efforts(given: Mapping[str, Any]) -> Iterable[str]:
    """Return the efforts that are listed; low, medium and high go without saying."""
    if levels := given.get("reasoning_effort_levels"):
        return [effort for effort in EFFORTS if effort in levels]
    graded = {e: given.get(f"supports_{e}_reasoning_effort") for e in _GRADED}
    if not any(graded.values()):
        return []
    return [effort for effort in EFFORTS if graded.get(effort, effort not in _GRADED)]


def _merge(one: list[Any], other: list[Any]) -> list[Any]:
    """Combine two rows about one model."""
    window, output = (min(filter(None, pair), default=0) for pair in _pairs(one, other))
    letters = {x.lower(): x for x in (one[2] + other[2]) if x != RESPONSES_ONLY}
    for letter in letters:
        if letter in one[2] + other[2]:  # one of them says no
            letters[letter] = letter
    only = (
        RESPONSES_ONLY
        if RESPONSES_ONLY in one[2] and RESPONSES_ONLY in other[2]
        else ""
    )
    prices = [
        max((p for p in pair if p is not None), default=None)
        for pair in zip(one[4:], other[4:], strict=True)
    ]
    efforts = [e for e in one[3].split() if not other[3] or e in other[3].split()]
    flags = "".join(letters[x] for x in FLAGS if x in letters) + only
    return [window, output, flags, " ".join(efforts or other[3].split()), *prices]


def _pairs(one: list[Any], other: list[Any]) -> Iterator[tuple[int, int]]:
    return zip(one[:2], other[:2], strict=True)


def _trimmed(rows: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Drop unknown values at the ends of rows, and rows that say nothing."""
    made = {}
    for model, row in sorted(rows.items()):
        while row and (row[-1] is None or (len(row) <= _SIZES and not row[-1])):
            row = row[:-1]  # a price may be 0
        if row:
            made[model] = [
                int(v) if isinstance(v, float) and v == int(v) else v for v in row
            ]
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
