"""A daemon for trials, in the command itself: the user's settings, a folder of its own.

It is started as `byok serve` starts it, but in the event loop of the command: there is
no process to find and to end, and if the command is killed, only a folder among the
temporary files is left. Its state is in that folder: no index, journal, log or token of
the user is touched. Keys come from where the user's are, and what is known of models is
copied.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from byok.config import Settings
from byok.daemon.token import read_token
from byok.platform.paths import Paths, make_private
from byok.redact import Redactor
from byok.server.run import listening
from byok.trials.trial_client import RecordKeeper, TrialClient
from byok.wiring.key_sources import make_ladder
from byok.wiring.services import Services, open_services

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

OVERRIDES = {
    "server": {"port": 0},
    "context": {"workspaces": []},
    "routing": {"fallback": {"chat": []}},
}
"""The settings of a trial that are not the user's: it indexes nothing, and the model
that is tried answers, or none."""
_FOLDER = "byok-trial-"


class Trial(NamedTuple):
    """An open daemon, and a client that asks it."""

    services: Services
    client: TrialClient


@asynccontextmanager
async def open_trial(
    settings: Settings,
    paths: Paths,
    redactor: Redactor,
    *,
    upstream: str = "",
    prompts: Path | None = None,
) -> AsyncIterator[Trial]:
    """Serve until the block ends; `settings` are loaded with OVERRIDES.

    `prompts` is a folder to use instead of that with the user's own prompts.

    Raises:
        ConfigError: the settings or the prompts cannot be used.
        CannotStart: no port can be had.
    """
    import aiohttp

    keeper = RecordKeeper()
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        own = _own_paths(paths, Path(folder))

        def services() -> "AbstractAsyncContextManager[Services]":
            return open_services(
                settings,
                own,
                upstream=upstream,
                ladder=make_ladder(paths),
                redactor=redactor,
                embeds=False,
                prompts=prompts or paths.prompts,
            )

        async with listening(
            settings, own, redactor, services, observers=[keeper]
        ) as daemon:
            headers = {"Authorization": f"Bearer {read_token(own.token)}"}
            async with aiohttp.ClientSession(
                daemon.url,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            ) as session:
                yield Trial(daemon.services, TrialClient(session, keeper))


def _own_paths(paths: Paths, folder: Path) -> Paths:
    """Return paths in a folder, with copies of what is known of models."""
    own = Paths(folder / "config", folder / "state", folder / "data")
    make_private(own.state_dir)
    for known, copy in ((paths.models, own.models), (paths.profiles, own.profiles)):
        if known.is_file():
            shutil.copyfile(known, copy)
    return own
