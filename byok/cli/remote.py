"""byok remote: allow or forbid that a search server gets words of your questions."""

import typer

from byok.cli.command_context import ConfigOption, load
from byok.cli.terminal import YesOption, confirm, say
from byok.core.errors import ConfigError
from byok.search.outside.consent import Consent

commands = typer.Typer(no_args_is_help=True)


@commands.command("enable")
def enable(yes: YesOption = False, config: ConfigOption = None) -> None:
    """Confirm that words of your questions may be sent to the search server."""
    from byok.wiring.remote_search import remote_place

    settings, paths = load(config)
    if not settings.search.remote.on:
        raise ConfigError(
            "The settings name no search server.",
            hint="Set url in the section [search.remote].",
        )
    place = remote_place(settings)
    say(
        f"{place.host} would get up to ten words of each question about code and of "
        "each message in chat mode, and the names of files in it."
    )
    if not place.is_local:
        say("They leave this machine; keys are masked, and code is never sent.")
        confirm("Send them?", "byok remote enable", yes=yes)
    Consent(paths.search_consent).give(place.host, "")
    say(f"search server: enabled; {place.host}")


@commands.command("disable")
def disable(config: ConfigOption = None) -> None:
    """Ask no search server from now on."""
    _, paths = load(config)
    Consent(paths.search_consent).withdraw()
    say("search server: disabled; nothing is sent")
