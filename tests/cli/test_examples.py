"""The examples at the end of the pages of --help."""

import shlex
from typing import Any

import pytest

from byok.cli import app
from byok.cli.commands import ROWS, load_command
from byok.cli.examples import examples_of
from tests.fakes.commands import Cli


def commands() -> list[str]:
    """Return all commands without commands below them, as they are typed."""
    return [
        words
        for name in ROWS
        for sub in ["", *getattr(load_command(name), "commands", {})]
        if not (sub and load_command(name).commands[sub].hidden)
        if (words := f"{name} {sub}".strip()) not in GROUPS
    ]


GROUPS = [name for name in ROWS if hasattr(load_command(name), "commands")]


@pytest.mark.parametrize("words", [*commands(), *GROUPS])
def test_every_command_has_examples_that_the_command_line_takes(words: str) -> None:
    found = examples_of(words)
    assert found
    for line in found:
        assert parse(shlex.split(line)[1:]).startswith(f"byok {words}")


def parse(given: list[str]) -> str:
    """Parse words as byok does without running it; return the command that is meant."""
    import typer

    command: Any = typer.main.get_command(app)
    context = command.make_context("byok", given)
    while hasattr(command, "commands") and context._protected_args + context.args:
        name, command, rest = command.resolve_command(
            context, context._protected_args + context.args
        )
        context = command.make_context(name, rest, parent=context)
    return str(context.command_path)


def test_help_ends_with_examples(cli: Cli) -> None:
    assert cli("keys", "test", "--help").out.rstrip().endswith("keys test openrouter")
