"""byok config: create, find, check and show the settings."""

import typer

from byok.cli.command_context import (
    ConfigOption,
    load,
    tell_foreign_variables,
    tell_not_running,
)
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import say, say_json, say_text, tell
from byok.core.errors import ConfigError
from byok.core.platform.paths import create_private, find_paths
from byok.core.routing import Service
from byok.settings import check_settings, mask_settings

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
    settings, paths = load(config)
    check_settings(settings)
    tell_foreign_variables()
    file = config or paths.config
    say(f"{file}: valid" if file.exists() else f"{file} does not exist: defaults apply")


@commands.command("show")
def show(config: ConfigOption = None) -> None:
    """Print the settings in use as JSON, without secrets.

    These are the settings of the running daemon. With --config, or if no daemon is
    running, they are the ones that a daemon would start with.
    """
    answer = None if config else ask_daemon(Service.SETTINGS)
    if answer is None:
        answer = mask_settings(load(config)[0])
        if config is None:
            tell_not_running()
    say_json(answer)
