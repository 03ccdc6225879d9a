"""How this byok was installed, and how messages write its commands to be pasted.

Messages name commands as `byok NAME`. If that word would not start this byok in the
user's shell, `make_pasteable` writes the program's path instead; texts of the daemon,
which may be read in any shell, get its BYOK_HOME, too. Only this module knows the ways
of installation, and their commands to add an extra, upgrade and remove. They name the
package by the address that it came from, which pip, uv and pipx record as PEP 610
(`direct_url.json`) describes. Only a package from a registry is named by the
distribution alone: otherwise that name might be another's package there.
"""

import os
import re
import shlex
import shutil
import sys
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

DISTRIBUTION = "byokd"
_SCRIPT = "byok.exe" if sys.platform == "win32" else "byok"
# A pattern of the words that follow the program's name in a command.
COMMANDS = (
    r"(?:ask|capture|caps|config|connect|dashboard|demo|disconnect|doctor|embed|"
    r"explain|index|init|keys|log|mcp|memory|models|probe|prompts|reload|remote|"
    r"report|restart|search|serve|service|status|stop|token|uninstall|upgrade|usage|"
    r"version)\b"
)
# A command in a sentence: not a part of a path, of a file's name or of another word.
_COMMAND = re.compile(rf"(?<![\w./~\\-])byok(?= {COMMANDS})")


class Installer(StrEnum):
    """The program or way by which byok was installed."""

    CHECKOUT = "checkout"  # a clone, whose code is used in place
    PIP = "pip"
    PIPX = "pipx"
    UV_TOOL = "uv tool"


class Installation(Struct, frozen=True):
    """Where this byok is, and where it came from.

    `source` is a clone's folder for a checkout, else the address of PEP 610, "" if it
    came from a registry. `environment` is the virtual environment or prefix.
    """

    installer: Installer
    source: str
    environment: Path

    @property
    def script(self) -> Path:
        """The program `byok` of this installation; it need not exist."""
        folder = "Scripts" if sys.platform == "win32" else "bin"
        return self.environment / folder / _SCRIPT

    def program(self) -> str:
        """Return the command that starts this byok in a shell, quoted if necessary.

        A program on the search path is only compared, never run, so it may be anywhere.
        """
        on_path = shutil.which("byok")
        if on_path and Path(on_path).resolve() == self.script.resolve():
            return "byok"
        if self.script.is_file():
            return quote(self.script)
        return f"{quote(sys.executable)} -m byok"

    def extra_commands(self, extra: str) -> list[list[str]]:
        """Return the commands that add an optional part of byok, such as `otel`."""
        requirement = self._requirement(f"[{extra}]")
        match self.installer:
            case Installer.CHECKOUT:
                folder = f"{self.source}[{extra}]"
                return [[sys.executable, "-m", "pip", "install", "--editable", folder]]
            case Installer.UV_TOOL:
                return [["uv", "tool", "install", "--force", requirement]]
            case Installer.PIPX:
                return [["pipx", "install", "--force", requirement]]
            case Installer.PIP:
                return [[sys.executable, "-m", "pip", "install", requirement]]

    def upgrade_commands(self) -> list[list[str]]:
        """Return the commands that install the newest byok, in order."""
        if self.installer is Installer.CHECKOUT:
            setup = str(Path(self.source) / "scripts" / "setup")
            return [["git", "-C", self.source, "pull", "--ff-only"], [setup, "run"]]
        if self.installer is Installer.UV_TOOL:
            if not self.source:
                return [["uv", "tool", "upgrade", DISTRIBUTION]]
            return [["uv", "tool", "install", "--reinstall", self._requirement()]]
        if self.installer is Installer.PIPX:
            if not self.source:
                return [["pipx", "upgrade", DISTRIBUTION]]
            return [["pipx", "install", "--force", self._requirement()]]
        pip = [sys.executable, "-m", "pip", "install", "--upgrade"]
        return [[*pip, self._requirement()]]

    def removal_commands(self) -> list[list[str]]:
        """Return the commands that remove the program; [] for a clone."""
        match self.installer:
            case Installer.CHECKOUT:
                return []
            case Installer.UV_TOOL:
                return [["uv", "tool", "uninstall", DISTRIBUTION]]
            case Installer.PIPX:
                return [["pipx", "uninstall", DISTRIBUTION]]
            case Installer.PIP:
                return [[sys.executable, "-m", "pip", "uninstall", "-y", DISTRIBUTION]]

    def _requirement(self, extra: str = "") -> str:
        if not self.source:
            return f"{DISTRIBUTION}{extra}"
        return f"{DISTRIBUTION}{extra} @ {self.source}"


def find_command() -> str:
    """Return the command that reaches this byok from any shell of its user.

    If BYOK_HOME is set here, the command sets it: a shell need not have it. On Windows
    no word before a command can do that.
    """
    program, home = find_installation().program(), os.environ.get("BYOK_HOME")
    if not home or sys.platform == "win32":
        return program
    return f"BYOK_HOME={quote(home)} {program}"


@cache
def find_installation() -> Installation:
    """Return how the running byok was installed."""
    prefix = Path(sys.prefix)
    clone = Path(__file__).resolve().parents[3]
    if (clone / "scripts" / "setup").is_file():
        return Installation(Installer.CHECKOUT, str(clone), prefix)
    source = _read_source()
    if (prefix / "uv-receipt.toml").is_file():
        return Installation(Installer.UV_TOOL, source, prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return Installation(Installer.PIPX, source, prefix)
    return Installation(Installer.PIP, source, prefix)


def list_extras() -> list[str]:
    """Return the names of byok's optional parts."""
    from importlib import metadata  # not for every command

    try:
        return metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []


def make_pasteable(text: str, program: str | None = None) -> str:
    """Return a text for the user with commands as they can be run here.

    `program` is the command that starts byok; by default, the one for this user's
    shell.
    """
    if "byok " not in text:
        return text
    command = program or find_installation().program()
    return text if command == "byok" else _COMMAND.sub(lambda _: command, text)


def make_plain(text: str, program: str | None = None) -> str:
    """Undo `make_pasteable`, by default in a text of the daemon."""
    return text.replace(f"{program or find_command()} ", "byok ")


def quote(word: object) -> str:
    """Return a word of a command for the user's shell, in quotes if necessary."""
    if sys.platform != "win32":
        return shlex.quote(str(word))
    return f'"{word}"' if re.search(r"[\s\[@]", str(word)) else str(word)


def _read_source() -> str:
    """Return the address that this byok was installed from, "" if from a registry."""
    from importlib import metadata  # not for every command

    import orjson

    try:
        text = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
        facts: Any = orjson.loads(text or "{}")
        url = str(facts.get("url") or "")
        if vcs := facts.get("vcs_info"):
            revision = vcs.get("requested_revision")
            return f"{vcs['vcs']}+{url}{f'@{revision}' if revision else ''}"
    except (metadata.PackageNotFoundError, ValueError, AttributeError, KeyError):
        return ""
    return url


def find_link(installation: Installation) -> Path | None:
    """Return the link on the search path that `scripts/install` made to a clone."""
    on_path = shutil.which("byok")
    if on_path is None or installation.installer is not Installer.CHECKOUT:
        return None
    link = Path(on_path)
    leads_here = link.resolve() == installation.script.resolve()
    return link if link.is_symlink() and leads_here else None
