"""byok config."""

import typer

from byok.cli.context import ConfigOption, load, tell_foreign_variables
from byok.cli.output import say, say_json
from byok.paths import find_paths


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Find, check and show the settings.", no_args_is_help=True)
    group.command(name="path")(path)
    group.command(name="check")(check)
    group.command(name="show")(show)
    app.add_typer(group, name="config")


def path() -> None:
    """Print where the settings file is, or would be."""
    say(str(find_paths().config))


def check(config: ConfigOption = None) -> None:
    """Check the settings without starting anything."""
    from byok.config import check_files

    settings, paths = load(config)
    check_files(settings)
    tell_foreign_variables()
    file = config or paths.config
    say(f"{file}: fine" if file.exists() else f"{file} does not exist: defaults apply")


def show(config: ConfigOption = None) -> None:
    """Print the settings in force as JSON, without secrets."""
    settings, _ = load(config)
    shown = settings.model_dump(mode="json")
    for section in (shown["chat"], *shown["upstreams"].values()):
        for field in ("headers", "extra_body"):
            section[field] = {name: "***" for name in section[field]}
    for section in (shown["network"], *shown["upstreams"].values()):
        section["proxy"] = _without_user(section["proxy"])
    for upstream in shown["upstreams"].values():
        upstream["api_key_cmd"] = upstream["api_key_cmd"][:1]
    say_json(shown)


def _without_user(url: str) -> str:
    """Drop the user and password of a proxy's address."""
    scheme, found, rest = url.partition("://")
    return f"{scheme}{found}{rest.rpartition('@')[2]}"
