"""The archives for reports: results, settings, versions and log, without secrets.

They hold no key and no token, no text of prompts, nothing of code, and `~` in place of
the home folder. That about a captured request has the request as well.
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
from byok.cli.checks.base import CheckRow, Surroundings, write_report
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

# What other checks do not load anyhow, or what is asked for when a bug is reported.
PACKAGES = (
    *("aiohttp", "httpx", "keyring", "orjson", "pydantic", "PyStemmer", "tantivy"),
    *("tree-sitter", "tree-sitter-language-pack", "truststore", "watchfiles"),
)
_LOG_BYTES, _LOG_LINES = 256 * 1024, 500
_TOKEN_BYTES = 1024
_SECRET_NAMES = re.compile(
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSPHRASE)(_|$)", re.IGNORECASE
)
# The one line of the log that quotes what a model wrote; see server/model_answer.py.
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
    around: Surroundings,
    capture: Capture | None = None,
    *,
    with_content: bool = False,
    show: Callable[..., None] = lambda **_: None,
) -> list[CheckRow]:
    """Run all checks, and write an archive of their results where one is wanted.

    With a capture it holds that, too, and must be written; else what was found counts.

    Raises:
        OSError: the archive about a capture cannot be written.
    """

    def show_count(done: int) -> None:
        show(done=done, total=len(CHECKS))

    try:
        rows = await examine(around, show=show_count)
        if file is not None:
            more = await write_parts(capture, around, with_content) if capture else {}
            try:
                await asyncio.to_thread(write_bundle, file, around, rows, more)
            except OSError as error:
                if capture:
                    raise
                tell(f"{file} cannot be written: {error.strerror}.")
    finally:
        await around.close()
    return rows


def write_bundle(
    file: Path,
    around: Surroundings,
    rows: Sequence[CheckRow],
    more: Mapping[str, str | bytes] = MappingProxyType({}),
) -> None:
    """Write the archive, which only its owner may read. Blocks.

    `more` are further files by their names, from which known secrets and the home
    folder are taken out as well.

    Raises:
        FileExistsError: there is such a file.
        OSError: it cannot be written; nothing is left of it.
    """
    _learn_secrets(around)
    hide = _hide(around.redactor, around.machine.home)
    contents: dict[str, str | bytes] = {
        **{name: _hide_in(content, hide) for name, content in more.items()},
        "doctor.json": _json(write_report(rows), hide),
        "settings.json": _json(_settings(around), hide),
        "versions.json": _json(versions(), hide),
        "log.txt": "\n".join(map(hide, _log_lines(around.paths.log))) + "\n",
    }
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(file, flags | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as raw, zipfile.ZipFile(raw, "w") as archive:
            for name, text in contents.items():
                archive.writestr(name, text, zipfile.ZIP_DEFLATED)
    except OSError:
        file.unlink()  # it was created a moment ago, by this very call
        raise


def _hide_in(content: str | bytes, hide: Callable[[str], str]) -> str:
    """Hide line by line: `hide` writes a line break as an escape."""
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    return "\n".join(map(hide, text.split("\n")))


def _learn_secrets(around: Surroundings) -> None:
    """Let the redactor know the tokens, and what the environment holds of secrets."""
    paths = around.paths
    for file in (paths.token, paths.metrics_token, paths.owner_secret):
        token = _read_end(file, _TOKEN_BYTES)
        around.redactor.add(token.decode("utf-8", "replace").strip())
    for name, value in around.environ.items():
        if _SECRET_NAMES.search(name):
            around.redactor.add(value)


def _hide(redactor: Redactor, home: Path) -> Callable[[str], str]:
    """Return what removes secrets and the home folder from a text."""
    homes = {str(home), str(home.resolve())} - {"/"}
    pattern = re.compile(rf"(?:{'|'.join(map(re.escape, homes)) or '(?!)'})(?![\w.-])")

    def hide(text: str) -> str:
        return escape(pattern.sub("~", redactor(text)))

    return hide


def _settings(around: Surroundings) -> Json:
    """Return the settings without secrets, and without the user's own prompts."""
    try:
        shown = mask_settings(around.read_settings())
    except ConfigError as error:
        return {"error": str(error)}
    for section in (shown["chat"], *shown["upstreams"].values()):
        section["system_prompt"] = _length(section["system_prompt"])
    shown["prompts"] = {name: _length(text) for name, text in shown["prompts"].items()}
    return shown


def _length(text: str) -> str:
    return f"({len(text):,} characters)" if text else ""


def _json(value: Any, hide: Callable[[str], str]) -> bytes:
    return orjson.dumps(_map_texts(value, hide), option=orjson.OPT_INDENT_2)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Change every text of a value, the names of fields as well."""
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
    """Return the last lines of the log, without what it quotes of models."""
    text = _read_end(file, _LOG_BYTES).decode("utf-8", "replace")
    lines = text.splitlines()[-_LOG_LINES:]
    return [_LEFT_OUT if _QUOTES.search(line) else line for line in lines]


def _read_end(file: Path, most: int) -> bytes:
    """Return the end of a plain file; b"" of anything else."""
    try:
        handle = os.open(file, READ_PLAIN)
    except OSError:
        return b""
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        return b""
    with os.fdopen(handle, "rb") as opened:
        opened.seek(max(0, facts.st_size - most))
        return opened.read(most)


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


async def write_parts(
    capture: Capture, around: Surroundings, with_content: bool
) -> Mapping[str, str | bytes]:
    """Return files for the archive by their names."""
    facts = capture.facts
    shown = capture if with_content else hide_content(capture)
    readme = _README.format(
        version=facts.get("byok", "?"),
        id=capture.id,
        content=_SHOWN if with_content else _HIDDEN,
    )
    catalog = await around.ask_if_running(Service.CATALOG)
    model = _find_model(catalog or {}, str(facts["upstream"]), str(facts["model"]))
    return {
        "README.txt": readme,
        "capture.jsonl": encode_capture(shown),
        "model.json": orjson.dumps(model, option=orjson.OPT_INDENT_2),
    }


def _find_model(catalog: Json, upstream: str, model: str) -> dict[str, Any]:
    ending = f"{upstream}:{model}"
    for value in catalog.values():
        for row in value if isinstance(value, list) else ():
            if isinstance(row, dict) and str(row.get("id", "")).endswith(ending):
                return row
    return {}
