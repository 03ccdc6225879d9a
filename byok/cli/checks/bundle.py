"""The archives for reports: results, settings, versions and log, without secrets.

They hold no key, no token, no text of prompts and no code; `~` replaces the home
folder. The archive about a captured request holds the request, too.
"""

import asyncio
import os
import platform
import re
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

import orjson

from byok import __version__
from byok.cli.checks.base import CheckContext, CheckRow, write_report
from byok.cli.checks.examine import CHECKS, examine
from byok.cli.terminal import tell
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.escapes import escape
from byok.core.platform.paths import READ_PLAIN
from byok.core.redact import Redactor
from byok.core.routing import Service
from byok.features.capture.capture import Capture, encode_capture
from byok.features.capture.scrub import hide_content
from byok.settings import mask_settings

# The packages whose versions a bug report needs.
PACKAGES = (
    *("aiohttp", "httpx", "keyring", "orjson", "pydantic", "PyStemmer", "tantivy"),
    *("tree-sitter", "tree-sitter-language-pack", "truststore", "watchfiles"),
)
_LOG_BYTES, _LOG_LINES = 256 * 1024, 500
_TOKEN_BYTES = 1024
_SECRET_NAMES = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE)(_|$)", re.IGNORECASE
)
# The only log message that quotes a model's text; see server/model_answer.py.
_QUOTES = re.compile(r"byok\.server\.model_answer: tool call of .* repaired")
_LEFT_OUT = "(the repair of a tool call is left out)"
_README = """A report of byok {version} about one request ({id}).

{content}
Keys, tokens, cookies, values of queries and long base64 were removed when the request
was captured. LOOK THROUGH ALL FILES BEFORE YOU SHARE THEM: a secret of no known shape
may stand in any text.

README.txt      this text
capture.jsonl   the request: its facts, then what passed on each hop, one line a piece
model.json      what byok knows of the model, and from where ({{}} without a daemon)
doctor.json     the results of byok doctor
settings.json   the settings, without secrets and prompts
versions.json   versions of byok, Python, the system and packages
log.txt         the end of the log, without what it quotes
"""
_HIDDEN = "Each letter of what you, your code and the model said is an x.\n"
_SHOWN = "IT HOLDS WHAT YOU, YOUR CODE AND THE MODEL SAID (--with-content).\n"


async def examine_into(
    file: Path | None,
    context: CheckContext,
    capture: Capture | None = None,
    *,
    with_content: bool = False,
    show: Callable[..., None] = lambda **_: None,
) -> list[CheckRow]:
    """Run all checks, and write an archive of their results unless `file` is None.

    With a capture, the archive holds it too, and is what the user wants; else the
    results matter, and an archive that cannot be written is only reported.

    Raises:
        OSError: the archive about a capture cannot be written.
    """
    try:
        rows = await examine(
            context, show=lambda done: show(done=done, total=len(CHECKS))
        )
        if file is not None:
            parts = await write_parts(capture, context, with_content) if capture else {}
            try:
                await asyncio.to_thread(write_bundle, file, context, rows, parts)
            except OSError as error:
                if capture:
                    raise
                tell(f"{file} cannot be written: {error.strerror}.")
    finally:
        await context.close()
    return rows


def write_bundle(
    file: Path,
    context: CheckContext,
    rows: Sequence[CheckRow],
    parts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the archive, which only its owner may read. Blocks.

    `parts` are further files by name; secrets and the home folder are hidden in them.

    Raises:
        FileExistsError: there is such a file.
        OSError: it cannot be written; nothing is left of it.
    """
    _learn_secrets(context)
    hide = _make_hider(context.redactor, context.machine.home)
    contents: dict[str, str | bytes] = {
        # Line by line, as `hide` escapes line breaks.
        **{
            name: "\n".join(map(hide, text.split("\n"))) for name, text in parts.items()
        },
        "doctor.json": _json(write_report(rows), hide),
        "settings.json": _json(_settings(context), hide),
        "versions.json": _json(versions(), hide),
        "log.txt": "\n".join(map(hide, _log_lines(context.paths.log))) + "\n",
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(file, flags | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as raw, zipfile.ZipFile(raw, "w") as archive:
            for name, text in contents.items():
                archive.writestr(name, text, zipfile.ZIP_DEFLATED)
    except OSError:
        file.unlink()  # O_EXCL: this call created it
        raise


def _learn_secrets(context: CheckContext) -> None:
    """Register byok's tokens and the secrets of the environment with the redactor."""
    paths = context.paths
    for file in (paths.token, paths.metrics_token, paths.owner_secret):
        token = _read_end(file, _TOKEN_BYTES)
        context.redactor.add(token.decode("utf-8", "replace").strip())
    for name, value in context.environ.items():
        if _SECRET_NAMES.search(name):
            context.redactor.add(value)


def _make_hider(redactor: Redactor, home: Path) -> Callable[[str], str]:
    """Return a function that hides secrets and the home folder in a text."""
    homes = {str(home), str(home.resolve())} - {"/"}
    pattern = re.compile(rf"(?:{'|'.join(map(re.escape, homes)) or '(?!)'})(?![\w.-])")

    def hide(text: str) -> str:
        return escape(pattern.sub("~", redactor(text)))

    return hide


def _settings(context: CheckContext) -> Json:
    """Return the settings without secrets, and without the user's own prompts."""
    try:
        settings = mask_settings(context.read_settings())
    except ConfigError as error:
        return {"error": str(error)}
    for section in (settings["chat"], *settings["upstreams"].values()):
        section["system_prompt"] = _describe_length(section["system_prompt"])
    settings["prompts"] = {
        name: _describe_length(text) for name, text in settings["prompts"].items()
    }
    return settings


def _describe_length(text: str) -> str:
    return f"({len(text):,} characters)" if text else ""


def _json(value: Any, hide: Callable[[str], str]) -> bytes:
    return orjson.dumps(_map_texts(value, hide), option=orjson.OPT_INDENT_2)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change every string of a JSON value, including the names of fields."""
    match value:
        case str():
            return change(value)
        case dict():
            return {change(k): _map_texts(v, change) for k, v in value.items()}
        case list() | tuple():
            return [_map_texts(item, change) for item in value]
        case _:
            return value


def _log_lines(file: Path) -> list[str]:
    """Return the last lines of the log, without those that quote a model."""
    text = _read_end(file, _LOG_BYTES).decode("utf-8", "replace")
    lines = text.splitlines()[-_LOG_LINES:]
    return [_LEFT_OUT if _QUOTES.search(line) else line for line in lines]


def _read_end(file: Path, max_bytes: int) -> bytes:
    """Return the last bytes of a regular file; b"" if it is none."""
    try:
        handle = os.open(file, READ_PLAIN)
    except OSError:
        return b""
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        return b""
    with os.fdopen(handle, "rb") as reader:
        reader.seek(max(0, status.st_size - max_bytes))
        return reader.read(max_bytes)


def versions() -> dict[str, str]:
    """Return the versions of byok, Python, system and packages; "" for missing ones."""
    basics = {
        "byok": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    return basics | {name: _version(name) for name in PACKAGES}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


async def write_parts(
    capture: Capture, context: CheckContext, with_content: bool
) -> Mapping[str, str]:
    """Return the files about a capture for its archive, by name."""
    facts = capture.facts
    visible = capture if with_content else hide_content(capture)
    readme = _README.format(
        version=facts.get("byok", "?"),
        id=capture.id,
        content=_SHOWN if with_content else _HIDDEN,
    )
    catalog = await context.ask_if_running(Service.CATALOG)
    model = _find_model(catalog or {}, str(facts["upstream"]), str(facts["model"]))
    return {
        "README.txt": readme,
        "capture.jsonl": encode_capture(visible).decode("utf-8", "replace"),
        "model.json": orjson.dumps(model, option=orjson.OPT_INDENT_2).decode(),
    }


def _find_model(catalog: Json, upstream: str, model: str) -> dict[str, Any]:
    ending = f"{upstream}:{model}"
    for value in catalog.values():
        for row in value if isinstance(value, list) else ():
            if isinstance(row, dict) and str(row.get("id", "")).endswith(ending):
                return row
    return {}
