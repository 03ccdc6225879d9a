"""The table of all commands; a command's module is imported when it is called.

`byok --help` and shell completion import none of these modules: they show the rows. A
module has a function of the command's name, or a group `commands` of subcommands.
"""

import inspect
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import DefaultPlaceholder

from byok import __version__
from byok.cli.examples import examples_of
from byok.cli.terminal import say, tell
from byok.core.language import (
    COMMANDS,
    ENGLISH,
    language_in_force,
    language_of_environment,
    translate,
    use_language,
)
from byok.core.platform.installation import make_pasteable, quote
from byok.core.redact import looks_like_key
from byok.core.suggest import did_you_mean
from byok.features import ROWS as FEATURES

_UsageError: Any = typer.BadParameter.__base__
_ONLY_HELP = "NoArgsIsHelpError"  # carries the page of --help, translated already
# Names in `typer.rich_utils`, and the texts that typer prints around an error.
_ERROR_TEXTS = {
    "ERRORS_PANEL_TITLE": "Error",
    "RICH_HELP": "Try [blue]'{command_path} {help_option}'[/] for help.",
}
_KEY_TYPED = (
    "A key is no part of the command: your shell keeps it in its history. Better "
    "replace this key; byok keys set NAME asks for it."
)
# The attributes of commands and options that a page of --help shows.
_PAGE_ATTRIBUTES = ("help", "short_help", "epilog", "rich_help_panel")
_TITLES = (
    "ARGUMENTS_PANEL_TITLE",
    "COMMANDS_PANEL_TITLE",
    "DEFAULT_STRING",
    "OPTIONS_PANEL_TITLE",
    "REQUIRED_LONG_STRING",
)


class CommandRow(NamedTuple):
    """A command: its module in `cli/`, and its group and line on the page of --help.

    The line is the first paragraph of its docstring, or the whole help of a group.
    """

    module: str
    group: str
    help: str


INTERRUPTED = 130  # the exit code that shells give a command after Ctrl-C
_REQUESTS = "Look at requests"
# The commands by group, in the order in which a user needs them.
_PAGE = {
    "Set up": {
        "init": (
            "Set up byok: find models and keys, write the settings, start, connect an "
            "editor."
        ),
        "connect": (
            "Print the settings or variables that point a client at the running daemon."
        ),
        "disconnect": (
            "Undo `byok connect --write`: restore the client's previous settings files."
        ),
        "keys": "Store, list, test and remove the keys of upstreams.",
        "config": "Find, create, check and show the settings.",
        "token": "Show or replace the token that clients send.",
        "service": "Run byok as a service: from login on, and again after a crash.",
        "upgrade": "Bring the newest byok in the way in which this one was installed.",
        "uninstall": (
            "Remove byok from this machine: show everything it would remove, ask, and "
            "do it."
        ),
    },
    "Run": {
        "demo": "Show byok with a sample project and no key; nothing of it stays.",
        "serve": "Run the daemon until it is stopped.",
        "status": (
            "Show the daemon, its default model, the index, and the latest requests."
        ),
        "dashboard": (
            "Open the dashboard: live requests, cost, conversations, index and "
            "settings."
        ),
        "stop": "Stop the running daemon and wait until it has ended.",
        "restart": "Restart the running daemon with the options it was started with.",
        "reload": "Make the running daemon read its settings and keys again.",
    },
    _REQUESTS: {
        "log": (
            "Show the latest requests: model, tokens, times, cost, and how they ended."
        ),
        "usage": (
            "Add up requests to models, their tokens and their cost in US dollars."
        ),
        "memory": "Show, list and forget the conversations that byok remembers.",
    },
    "Models and prompts": {
        "models": (
            "List the models of each upstream, what is known about them, and the "
            "defaults."
        ),
        "probe": "Test what a model supports, with a few small requests.",
        "prompts": "Show byok's prompts, and replace them with your own.",
    },
    "Code search": {
        "index": (
            "Manage the index of your code. `byok index --estimate DIR` estimates a "
            "first build."
        ),
        "search": (
            "Search code: print the text that an agent would get, or hits as JSON."
        ),
        "mcp": "Serve code search to an MCP client over standard input and output.",
        "embed": "Manage the vectors (embeddings) of your code.",
        "remote": "Allow or forbid questions to a search server of your organisation.",
    },
    "When something is wrong": {
        "doctor": (
            "Check the whole setup and say how to fix each problem; nothing is changed."
        ),
        "explain": (
            "Explain the code of an error: what happened, likely causes, what to do."
        ),
        "capture": (
            "Record what passes between client, byok and upstream, without secrets."
        ),
        "report": "Write an archive of a captured request, to attach to a bug report.",
        "version": "Print the versions of byok and Python.",
    },
}
# The modules of commands that have another name than their module.
_MODULES = {
    "disconnect": "connect",
    "upgrade": "installation",
    "uninstall": "installation",
    "stop": "control",
    "restart": "control",
    "reload": "control",
    "report": "capture",
    "usage": "log",
    "version": "commands",
}
ROWS = {
    name: CommandRow(_MODULES.get(name, name), group, help)
    for group, commands in _PAGE.items()
    for name, help in commands.items()
} | {
    row.name: CommandRow("feature", _REQUESTS, row.command)
    for row in FEATURES
    if row.command
}

# Commands that people know from other programs, and byok's own for them.
_KNOWN_ELSEWHERE = {
    "add": "index add FOLDER",
    "edit": "config edit",
    "login": "keys set NAME",
    "logs": "log -f",
    "open": "dashboard",
    "run": "serve",
    "setup": "init",
    "start": "serve",
    "ui": "dashboard",
    "update": "upgrade",
    "config get": "config show",
    "config list": "config show",
    "index list": "index status",
    "keys add": "keys set NAME",
    "keys delete": "keys remove NAME",
    "models list": "models",
}


class _HelpPage:
    """A mixin for commands: --help in the user's language, with examples.

    Flags are shown without a type.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The lines of each paragraph are wrapped to the terminal's width.
        text = inspect.cleandoc(getattr(self, "help", None) or "")
        self.help = re.sub(r"(?<!\n)\n(?=[^\s-])", " ", text) or None

    def get_params(self, ctx: Any) -> Any:
        """Return the parameters."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params

    def get_usage(self, ctx: Any) -> str:
        """Return the line of usage."""
        line: str = super().get_usage(ctx)  # type: ignore[misc]
        return line.replace("Usage: ", translate("Usage: "), 1)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page, with examples of the command and its subcommands."""
        listed = [*self.get_params(ctx), *getattr(self, "commands", {}).values()]
        with _in_language(self, listed):
            super().format_help(ctx, formatter)  # type: ignore[misc]
        _say_examples(ctx)


class _Command(_HelpPage, TyperCommand):
    """A command whose usage errors suggest what the user may have meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            message = _suggest_choice(error.message)
            error.message = _suggest_option(message, ctx.info_name)
            raise


class CommandGroup(_HelpPage, TyperGroup):
    """A command with subcommands; an unknown one gets a suggestion."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is called; for an unknown one, suggest another."""
        try:
            return super().resolve_command(ctx, args)
        except _UsageError as error:
            path = f"{ctx.command_path} {args[0]}".partition(" ")[2]
            meant = _KNOWN_ELSEWHERE.get(path, "")
            if not meant and any(param.name == "upstream" for param in self.params):
                meant = f"{path.rpartition(' ')[0]} --upstream {quote(args[0])}"
            if meant and not looks_like_key(args[0]):
                error.message = (
                    f"No such command {args[0]!r}. Did you mean: byok {meant}"
                )
            raise


class Program(CommandGroup):
    """byok itself: it lists its commands by their rows, and imports the one called."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.commands = {
            name: TyperCommand(name, help=row.help, rich_help_panel=row.group)
            for name, row in ROWS.items()
        }

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the command line in the language of the environment, or of --lang."""
        use_language(language_of_environment(os.environ))
        with _usage_errors_in_language():
            return super().make_context(*args, **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; `byok help COMMAND` shows its page of --help.

        --lang may stand behind the command, too.
        """
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        names = [word.partition("=")[0] for word in takewhile("--".__ne__, args)]
        if "--lang" in names:
            start = names.index("--lang")
            end = start + 2 - ("=" in args[start])
            args = [*args[start:end], *args[:start], *args[end:]]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the page, which ends with the command to start with."""
        self.epilog = make_pasteable(translate("Start with: byok init", COMMANDS))
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; if it is interrupted, print how to run it again."""
        try:
            with _usage_errors_in_language():
                return super().invoke(ctx)
        except (typer.Abort, KeyboardInterrupt) as error:
            tell("")
            tell(f"Stopped. To run it again: byok {shlex.join(sys.argv[1:])}")
            code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
            raise typer.Exit(code) from None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that is called, or whose options are completed."""
        name, placeholder, remaining = super().resolve_command(ctx, args)
        return name, placeholder and load_command(str(name)), remaining


@cache
def load_command(name: str) -> Any:
    """Import a command and return it."""
    row = ROWS[name]
    module = import_module(f"byok.cli.{row.module}")
    app = getattr(module, "commands", None) if name == row.module else None
    if app is None:
        app = typer.Typer()
        app.command(name)(getattr(module, name))
    elif isinstance(app.info.cls, DefaultPlaceholder):
        app.info.cls = CommandGroup
    if not app.registered_callback:
        app.info.help = row.help
    app.info.name = name
    for command in app.registered_commands:
        command.cls = _Command
    app.rich_markup_mode, app._add_completion = "rich", False
    return typer.main.get_command(app)


def version() -> None:
    """Print the versions of byok and Python."""
    say(f"byok {__version__} (Python {platform.python_version()})")


def _suggest_choice(message: str) -> str:
    """Add the most similar choice to a message about a value that is no choice."""
    if not (match := re.search(r"'([^']*)' is not one of (.+)", message, re.DOTALL)):
        return message
    guess = did_you_mean(match[1], re.findall(r"'([^']+)'", match[2]))
    return f"{match[0].rstrip('.')}. {guess}".rstrip()


def _suggest_option(message: str, command: str | None) -> str:
    """Suggest the option for a word that a command does not take; never show a key."""
    match = re.search(r"unexpected extra argument\S* \((\S+?)[ )]", message)
    if match and looks_like_key(match[1]):
        return _KEY_TYPED
    if not match or command != "serve":
        return message
    word = match[1]
    option = "--workspace" if Path(word).is_dir() else "--upstream"
    return f"No argument belongs here. Did you mean: byok serve {option} {quote(word)}"


def _say_examples(context: Any) -> None:
    """Print the examples of a page of --help; the page of byok itself has none."""
    _, _, words = context.command_path.partition(" ")
    if words and not context.command.hidden:
        say(" Examples:")
        for line in examples_of(words):
            say(f"   {line}")


@contextmanager
def _usage_errors_in_language() -> Iterator[None]:
    """Translate the usage errors of a command line, and the texts around them."""
    try:
        yield
    except _UsageError as error:
        from typer import rich_utils

        for name, text in _ERROR_TEXTS.items():
            setattr(rich_utils, name, translate(text))
        if language_in_force() == ENGLISH or type(error).__name__ == _ONLY_HELP:
            raise
        raise _UsageError(translate(error.format_message()), ctx=error.ctx) from None


@contextmanager
def _in_language(command: Any, listed: Iterable[Any]) -> Iterator[None]:
    """Translate a page of --help, and the rows that it lists, within the block."""
    if language_in_force() == ENGLISH:
        yield
        return
    from typer import rich_utils

    from byok.cli.wide_text import break_wide_text

    break_wide_text()
    attributes = [
        (owner, name) for owner in (command, *listed) for name in _PAGE_ATTRIBUTES
    ]
    attributes += [(rich_utils, name) for name in _TITLES]
    originals = [
        (owner, name, text)
        for owner, name in attributes
        if (text := getattr(owner, name, None))
    ]
    try:
        for owner, name, text in originals:
            paragraphs = text.split("\n\n")
            translated = "\n\n".join(translate(part, COMMANDS) for part in paragraphs)
            setattr(owner, name, translated)
        yield
    finally:
        for owner, name, text in originals:
            setattr(owner, name, text)
