"""byok config: create, find, check and show the settings."""

from typing import Annotated, Any

import typer

from byok.cli.command_context import (
    ConfigOption,
    ask_or_do,
    load,
    tell_foreign_variables,
)
from byok.cli.completion import complete_setting
from byok.cli.terminal import say, say_json, say_text, tell
from byok.clients.settings_text import MISSING, find_value
from byok.core.errors import ConfigError
from byok.core.platform.paths import create_private, find_paths
from byok.core.routing import Service
from byok.core.suggest import did_you_mean

commands = typer.Typer(no_args_is_help=True)


@commands.command("path")
def path() -> None:
    """Print the path of the settings file, whether it exists or not."""
    say(str(find_paths().config))


@commands.command("init")
def init() -> None:
    """Create the settings file, with every key explained and commented out."""
    from byok.settings import example

    file = find_paths().config
    try:
        create_private(file, example())
    except FileExistsError:
        raise ConfigError(
            f"{file} already exists.",
            hint="byok config example prints what byok config init would write.",
        ) from None
    say(str(file))
    tell("It explains every key. A running daemon applies changes within seconds.")


@commands.command("example")
def example() -> None:
    """Print an example file: every setting with its default and an explanation."""
    from byok.settings import example

    say_text(example().rstrip("\n"))


@commands.command("check")
def check(config: ConfigOption = None) -> None:
    """Validate the settings without starting anything."""
    from byok.settings import check_settings

    settings, paths = load(config)
    check_settings(settings)
    tell_foreign_variables()
    file = config or paths.config
    say(f"{file}: valid" if file.exists() else f"{file} does not exist: defaults apply")


@commands.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            help="A section, or a setting such as server.port; all without one.",
            metavar="[NAME]",
            autocompletion=complete_setting,
        ),
    ] = "",
    config: ConfigOption = None,
) -> None:
    """Print the settings in use as JSON, without secrets.

    These are the settings of the running daemon. With --config, or if no daemon is
    running, they are the ones that a daemon would start with.
    """
    from byok.settings import mask_settings

    answer = ask_or_do(
        Service.SETTINGS,
        lambda: mask_settings(load(config)[0]),
        is_elsewhere=config is not None,
    )
    say_json(_find_setting(answer, name) if name else answer)


@commands.command("set", hidden=True)
@commands.command("edit", hidden=True)
def refuse_to_set(
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Say how a setting is changed: the file is the user's own text."""
    file = find_paths().config
    hint = f"Edit {file}, then run: byok config check. The page: byok dashboard"
    if not file.exists():
        hint = "Create the file first: byok config init. The page: byok dashboard"
    raise ConfigError(
        "Settings are changed in their file, or on the page; nothing was changed.",
        hint=hint,
    )


def _find_setting(settings: Any, name: str) -> Any:
    """Return a section or a setting, None for one that is not set.

    Raises:
        ConfigError: there is none of this name.
    """
    value = find_value(settings, tuple(name.split(".")))
    if value is not MISSING:
        return value
    names = complete_setting("")
    if name in names:
        return None
    raise ConfigError(
        f"There is no setting {name[:100]!r}.",
        hint=f"{did_you_mean(name, names)} All: byok config example".lstrip(),
    )
