"""byok config."""

import typer

from byok.cli.context import ConfigOption, load, tell_foreign_variables
from byok.cli.output import say, say_json, tell
from byok.paths import find_paths


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Find, check and show the settings.", no_args_is_help=True)
    group.command(name="path")(path)
    group.command(name="init")(init)
    group.command(name="example")(example)
    group.command(name="check")(check)
    group.command(name="show")(show)
    app.add_typer(group, name="config")


def path() -> None:
    """Print where the settings file is, or would be."""
    say(str(find_paths().config))


def init() -> None:
    """Write the settings file: every key explained, none switched on."""
    from byok.config import example
    from byok.errors import ConfigError
    from byok.paths import make_private

    file = find_paths().config
    make_private(file.parent)
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(example())
    except FileExistsError:
        raise ConfigError(
            f"{file} is there already.",
            hint="byok config example prints what would have been written.",
        ) from None
    say(str(file))
    tell("Every key is explained in it; a running byok takes what you change at once.")


def example() -> None:
    """Print the commented example: every setting there is, with its default."""
    from byok.config import example

    say(example().rstrip("\n"))


def check(config: ConfigOption = None) -> None:
    """Check the settings without starting anything."""
    from byok.config import check_settings

    settings, paths = load(config)
    check_settings(settings)
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
