"""A daemon that takes its settings from a file, as `byok serve` does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor
from byok.server.control import Source
from byok.server.run import listening
from byok.settings import Settings, check_settings, load_settings
from byok.settings.keys import KeyLadder
from byok.settings.keys.keyring_store import KeyringStore
from byok.wiring.services import open_services
from tests.fakes.daemon import QUICK, Editor

PORT = {"server": {"port": 0}}


def write_settings(text: str | bytes, path: Path | None = None) -> Path:
    """Write the settings file, for its owner alone."""
    path = path or find_paths().config
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(0o600)
    return path


@asynccontextmanager
async def running_on_file(
    path: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    keyring: KeyringStore | None = None,
    options: Mapping[str, str] | None = None,
) -> AsyncIterator[Editor]:
    """Start a daemon on a free port and give a client of it; nothing is watched.

    `environ` is where keys are looked for.
    """
    paths, redactor = find_paths(), Redactor()
    path = path or paths.config

    def load() -> Settings:
        return load_settings(path, PORT)

    settings = load()
    ladder = KeyLadder(environ=environ or {}, keyring=keyring)
    source = Source(path, load, check_settings, PORT, options or {})
    opened = open_services(settings, paths, ladder=ladder, redactor=redactor)
    parts = (settings, paths, redactor, lambda: opened, QUICK, source)
    async with listening(*parts) as daemon, aiohttp.ClientSession() as http:
        yield Editor(daemon, daemon.services, read_token(paths.token), http)
