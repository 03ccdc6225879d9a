"""Check that the paths, commands and names in the documents exist in the tree.

A name is any text in backticks; file names are checked in drawings, too. A bare file
name in a row of a table belongs to the room that the row names first.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from byok.cli import app
from byok.cli.commands import ROWS, load_command
from byok.server.routes import FEATURE_ENDPOINTS
from byok.settings import Settings

ROOT = Path(__file__).parent.parent
_SOURCES = ("byok", "tools", "scripts")
_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([\w./-]*(?:#[^)\s]+)?)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MODULE = re.compile(r"[\w./-]*\w\.(?:py|js)\b")
_ROOM = re.compile(r"^\|\s*`(byok/[\w/]*)`")
_CASE = re.compile(r"\| [BF]\d+ \|")
_PATH = re.compile(r"\.?\w[\w.-]*/[\w./-]*")
_COMMAND = re.compile(r"byok(?: (?!is\b)\S+)+")
_TYPE = re.compile(r"(?:[A-Z][a-z0-9]+){2,}(?:\.\w+)*")
_CALL = re.compile(r"([\w.]+)\(\)")
_SETTING = re.compile(r"\[?([a-z_]+(?:\.[a-z_]+)+|[a-z_]+(?=\]))\]?(?: = .*)?")
_VARIABLE = re.compile(r"BYOK_([A-Z]+)__([A-Z_]+)(?:=.*)?")
_DEFINED = re.compile(
    r"^ *(?:(?:async )?(?:class|def) (\w+)|(\w+)(?:: | = ))", re.MULTILINE
)
# Names that are not in the tree: of other programs, clients, upstreams and examples.
FOREIGN = frozenset(
    {
        *("~/.cursor/mcp.json", "mcp.json", "~/.claude.json", "~/.ssh/config"),
        *(".venv/bin/byok", "settings.json"),
        *("augment.advanced.apiToken", "augment.advanced.completionURL", "api_url"),
        *("core.excludesFile", "info/exclude", "sha256", "streams/", "protocol/"),
        *("byok/x/", "tests/x/", "/generate-branch-name"),
        *("save-file", "src/x.py", "chat/completions", "byok.NAME"),
        *("Code/User/settings.json", "~/.codex/config.toml", "User/profiles"),
        *("~/.continue/config.yaml", "~/.vscode-server", "~/.cursor-server"),
        *("~/.config/opencode/opencode.json", "settingsSync.ignoredSettings"),
        *("~/.config/systemd/user", "~/Library/LaunchAgents/byok.daemon.plist", "/tmp"),
        "HTTPS_PROXY",
        "/model",  # a command of Codex
        *("NoNewPrivileges", "-", "az"),  # of systemd, and tools beside it
    }
)


def unknown_names(page: Path) -> list[str]:
    """Return the names and links in a document that do not exist in the tree."""
    text = page.read_text("utf-8")
    missing = [link for link in _LINK.findall(text) if not _is_link_valid(page, link)]
    for line in text.splitlines():
        if _CASE.match(line) or line.startswith("+"):
            continue  # what attackers send; what a worked diff adds
        match = _ROOM.match(line)
        room = ROOT / match[1] if match else None
        missing += [name for name in _names(line) if not _exists(name, room)]
    return missing


def _is_link_valid(page: Path, link: str) -> bool:
    """Tell whether the file of a link exists, and its heading if the link has one."""
    file, _, anchor = link.partition("#")
    target = page.parent / file if file else page
    if not anchor or not target.is_file():
        return target.exists() and not anchor
    return anchor in map(_anchor, _HEADING.findall(target.read_text("utf-8")))


def _anchor(heading: str) -> str:
    """Return the anchor of a heading in links, in this repository and on the site."""
    return re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-")


def _names(line: str) -> Iterator[str]:
    yield from _CODE.findall(line)
    yield from _MODULE.findall(line)


def _exists(name: str, room: Path | None) -> bool:
    if name in FOREIGN or name.startswith(("{", "%h/", "-%h/")):  # a path of systemd
        return True
    if _COMMAND.fullmatch(name):
        return _is_command(name.split()[1:])
    if name.startswith("-"):
        return _is_option(name.split()[0])
    if _MODULE.fullmatch(name) or _PATH.fullmatch(name):
        return _is_file(name, room)
    if match := _VARIABLE.fullmatch(name):
        return _is_setting([match[1].lower(), match[2].lower()])
    if match := _SETTING.fullmatch(name):
        return _is_setting(match[1].split(".")) or _is_written(name)
    if _TYPE.fullmatch(name) or (match := _CALL.fullmatch(name)):
        parts = (match[1] if match else name).split(".")
        return all(part in _definitions() for part in parts)
    if " " in name or "…" in name:
        return True  # a message, or a command of another program
    return _is_written(name) or any(row.path == name for row in FEATURE_ENDPOINTS)


def _is_file(name: str, room: Path | None) -> bool:
    folders = [ROOT, ROOT / "byok", *([room] if room else [])]
    if any((folder / name).exists() for folder in folders):
        return True
    if "/" in name:
        return False
    return room is None and name in _file_names()


def _is_command(words: list[str]) -> bool:
    """Tell whether the words are a command of byok, and its options exist."""
    command = _program()
    for word in words:
        if word.startswith("-"):
            if word not in _options(command):
                return False
        elif commands := getattr(command, "commands", None):
            if word not in commands:
                return False
            command = commands[word]
    return True


def _options(command: Any) -> set[str]:
    own = {o for param in command.params for o in (*param.opts, *param.secondary_opts)}
    return {*own, "--estimate", "-h", "--help"}


def _is_option(name: str) -> bool:
    """Tell whether any command has an option."""
    remaining = [_program()]
    while remaining:
        command = remaining.pop()
        if name in _options(command):
            return True
        remaining += getattr(command, "commands", {}).values()
    return _is_written(name)


def _is_setting(keys: list[str]) -> bool:
    kind: object = Settings
    for key in keys:
        fields = getattr(kind, "model_fields", {})
        if key not in fields:
            return False
        kind = fields[key].annotation
        if str(kind).startswith("dict["):
            return True  # the next names are chosen by the user
    return True


@cache
def _is_written(name: str) -> bool:
    """Tell whether the code or the example of the settings contains a whole word."""
    text, offset = _corpus(), -1
    while (offset := text.find(name, offset + 1)) >= 0:
        neighbours = text[offset - 1] + text[offset + len(name)]
        if not any(char.isalnum() or char in "_-" for char in neighbours):
            return True
    return False


@cache
def _program() -> Any:
    """Return the program with all its commands imported."""
    program: Any = typer.main.get_command(app)
    program.commands = {name: load_command(name) for name in ROWS}
    return program


@cache
def _files() -> tuple[Path, ...]:
    return tuple(path for top in _SOURCES for path in (ROOT / top).rglob("*.py"))


@cache
def _scripts() -> tuple[Path, ...]:
    return tuple((ROOT / "byok").rglob("*.js"))


@cache
def _file_names() -> frozenset[str]:
    return frozenset(file.name for file in (*_files(), *_scripts()))


@cache
def _definitions() -> frozenset[str]:
    texts = (file.read_text("utf-8") for file in _files())
    matches = (match for text in texts for match in _DEFINED.finditer(text))
    return frozenset(match[1] or match[2] for match in matches)


@cache
def _corpus() -> str:
    settings_files = (ROOT / name for name in ("config.example.toml", "pyproject.toml"))
    prompts = [*(ROOT / "byok" / "core" / "prompts").glob("*.md")]
    texts = [
        file.read_text("utf-8")
        for file in (*_files(), *_scripts(), *settings_files, *prompts)
    ]
    return "\n".join(("", *texts, *(prompt.stem for prompt in prompts), ""))
