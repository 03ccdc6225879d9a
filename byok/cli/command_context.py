"""Options and setup that commands share: paths, settings, services."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from byok.cli.completion import complete_upstream
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import show_progress, tell
from byok.core.chat import Json
from byok.core.errors import ByokError, ConfigError
from byok.core.platform.paths import Paths, find_paths
from byok.core.redact import Redactor
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.settings import Settings
    from byok.wiring.services import Services

T = TypeVar("T")
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Use this settings file.", metavar="FILE"),
]
UpstreamOption = Annotated[
    str,
    typer.Option(
        "--upstream",
        help="An upstream from the settings, a preset, or a URL.",
        autocompletion=complete_upstream,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def load(
    config: Path | None = None, overrides: dict[str, Any] | None = None
) -> tuple["Settings", Paths]:
    """Read the settings of this user."""
    from byok.settings import load_settings

    paths = find_paths()
    return load_settings(find_config(config, paths), overrides), paths


def find_config(config: Path | None, paths: Paths) -> Path:
    """Return the settings file, which must exist if the user names it.

    Raises:
        ConfigError: it does not.
    """
    if config is not None and not config.exists():
        raise ConfigError(f"{config} does not exist.")
    return config or paths.config


def tell_foreign_variables() -> None:
    """Warn about `BYOK_*` variables that match no setting."""
    from byok.settings import foreign_variables

    for warning in foreign_variables():
        tell(f"byok: {warning}")


def ask_or_do(
    service: Service,
    do: Callable[[], Json],
    *,
    is_elsewhere: bool,
    words: str = "",
    hidden: bool = False,
) -> Json:
    """Return the daemon's answer, or that of `do` if none runs or `is_elsewhere`.

    `is_elsewhere` if the user named other settings than the daemon's. `words` are shown
    as progress.
    """
    with show_progress(words, hidden=hidden or not words):
        answer = None if is_elsewhere else ask_daemon(service)
        if answer is not None:
            return answer
        answer = do()
    if not is_elsewhere:
        tell("byok is not running; this comes from the settings file.")
    return answer


def with_services(
    work: "Callable[[Services], Awaitable[T]]",
    *,
    config: Path | None = None,
    upstream: str = "",
) -> T:
    """Open the services, run `work`, close them; secrets are removed from errors."""
    from byok.wiring.services import open_services

    settings, paths = load(config)
    redactor = Redactor()

    async def run() -> T:
        async with open_services(
            settings, paths, upstream=upstream, redactor=redactor, embeds=False
        ) as services:
            return await work(services)

    try:
        return asyncio.run(run())
    except ByokError as error:
        raise error.rewrite(redactor) from None
