"""What all commands share: help, exit codes, messages; and byok version."""

import itertools
import os
import platform
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from byok import __version__
from byok.cli import app, exit_code
from byok.cli.commands import ROWS, load_command
from byok.cli.examples import examples_of
from byok.core.error_table import error_rows
from byok.core.errors import ByokError, ConfigError, KeyMissing, UpstreamError
from tests.fakes.commands import Cli
from tests.fakes.program import needs_terminal


def commands_below(name: str) -> list[str]:
    """Return a command and the commands below it, as they are typed."""
    return [
        name,
        *(f"{name} {sub}" for sub in getattr(load_command(name), "commands", {})),
    ]


@pytest.mark.parametrize("name", ROWS)
def test_help_of_every_command_says_what_it_does_and_no_flag_has_a_type(
    cli: Cli, name: str
) -> None:
    assert load_command(name).help.partition("\n\n")[0].replace("\n", " ") == (
        ROWS[name].help
    )
    for words in commands_below(name):
        done = cli(*words.split(), "--help")
        assert (done.code, done.err, "bool" in done.out) == (0, "", False), words
        said = done.out.partition("\n\n")[2] or done.out
        assert re.search(r"(?m)^ [A-Z][^│]{10,}$", said), words


def test_help_lists_the_commands_in_groups(cli: Cli) -> None:
    page = cli("--help").out
    groups = [*dict.fromkeys(row.group for row in ROWS.values())]
    places = [page.find(f" {words} ") for words in groups]
    assert -1 not in places
    assert places == sorted(places)
    assert re.findall(r"^│ ([a-z]+) {2,}\S", page, re.M) == [*ROWS]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("-h", ""),
        ("index add -h", "index add"),
        ("help", ""),
        ("help index add", "index add"),
    ],
)
def test_help_has_a_short_option_and_is_a_word_too(
    cli: Cli, asked: str, words: str
) -> None:
    assert cli(*asked.split()) == cli(*words.split(), "--help")


@pytest.mark.parametrize(
    ("typed", "code", "named"),
    [
        ("connect vscod", 2, "Did you mean vscode?"),
        ("nope", 2, "No such command"),
        ("start", 2, "byok serve"),
        ("keys add openrouter", 2, "byok keys set NAME"),
        ("models olama", 2, "byok models --upstream olama"),
        ("config edit", 78, "byok config init"),
        ("edit", 2, "byok config edit"),
        ("explain 429", 0, "upstream_rate_limit"),
        ("serve --upstream olama", 78, "Did you mean ollama?"),
        ("models --upstream olama", 78, "Did you mean ollama?"),
        ("keys set olama", 78, "Did you mean ollama?"),
        ("models --config {}/none.toml", 78, "none.toml does not exist"),
        ("config check --config {}/none.toml", 78, "none.toml does not exist"),
        ("doctor --config {}/none.toml", 78, "none.toml does not exist"),
        ("serve --config {}/model.toml", 78, "Did you mean ollama?"),
        ("serve --config {}/broken.toml", 78, "byok config check"),
        ("serve --config {}/key.toml", 78, "byok keys set openrouter"),
        ("keys set openrouter sk-0123456789", 78, "byok keys set openrouter"),
        ("keys set sk-0123456789", 78, "byok keys set NAME"),
        ("serve --upstream sk-0123456789", 78, "byok keys set NAME"),
        ("serve --model sk-0123456789", 78, "byok keys set NAME"),
        ("serve --config {}/key_as_model.toml", 78, "byok keys set NAME"),
        ("serve sk-0123456789", 2, "byok keys set NAME"),
        ("serve ollama", 2, "byok serve --upstream ollama"),
        ("serve {}/project", 2, "byok serve --workspace"),
        ("config set server.port 9000", 78, "byok config init"),
        ("probe gpt-5", 78, "byok probe UPSTREAM/gpt-5"),
        ("index add {}/projet", 78, "Did you mean project?"),
        ("connect vscode --write", 3, "byok connect vscode --write --start"),
        ("log", 0, "byok connect vscode"),
    ],
)
def test_a_wrong_turn_ends_with_what_to_do(
    cli: Cli,
    tmp_path: Path,
    unused_port: None,
    typed: str,
    code: int,
    named: str,
) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "model.toml").write_text('[routing]\ndefault = "byok:olama:x"\n')
    (tmp_path / "broken.toml").write_text("[server\n")
    (tmp_path / "key_as_model.toml").write_text(
        '[upstreams.openai]\nmodel = "sk-0123456789"\n'
    )
    (tmp_path / "key.toml").write_text('[upstreams.openrouter]\napi_key = "sk-1"\n')
    done = cli(*typed.format(tmp_path).split())
    assert done.code == code
    assert named in " ".join(done.err.split())
    assert "sk-0123456789" not in done.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 78),
        (KeyMissing("x"), 78),
        (ByokError("x", code="already_running"), 75),
        (ByokError("x", code="port"), 69),
        (ByokError("x", code="index_in_use"), 75),
        (ByokError("x", code="newer_data"), 76),
        (UpstreamError("x"), 1),
    ],
)
def test_exit_code_of_every_kind_of_error(error: ByokError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("asked", ["version", "--version"])
def test_the_version_of_byok_and_of_python(cli: Cli, asked: str) -> None:
    done = cli(asked)
    line = f"byok {__version__} (Python {platform.python_version()})\n"
    assert (done.code, done.out, done.err) == (0, line, "")


@pytest.mark.parametrize("arguments", [("models",), ("search",)], ids=" ".join)
def test_help_breaks_paragraphs_only_at_the_terminals_width(
    cli: Cli, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    page = cli(*arguments, "--help").out.partition("╭─")[0]
    lines = map(str.strip, page.splitlines())
    for line, following in itertools.pairwise(lines):
        if line and following:
            assert len(f"{line} {following.split()[0]}") > 70


def test_a_code_is_explained_with_causes_and_cures(cli: Cli) -> None:
    done = cli("explain", "upstream_auth")
    row = error_rows()["upstream_auth"]
    first, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert first == f"upstream_auth: {row.what}"
    assert [line[4:] for line in lines if line.startswith("  - ")] == [
        *row.causes,
        *row.cures,
    ]


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("upstream_aut", "Did you mean upstream_auth? All: byok explain"),
        ("\x1b[2J", "\\x1b[2J"),
        ("x" * 100_000, "x" * 100),
    ],
    ids=["near", "control characters", "long"],
)
def test_an_unknown_code_is_refused(cli: Cli, code: str, told: str) -> None:
    done = cli("explain", code)
    assert (done.code, done.out) == (1, "")
    assert told in done.err
    assert "\x1b" not in done.err
    assert len(done.err) < 1000


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


@needs_terminal
@pytest.mark.parametrize("words", [("memory", "forget", "--all"), ("upgrade",)])
def test_a_person_who_declines_ends_the_command_with_1(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    from tests.fakes.terminal import typing_to

    with typing_to(*words, env={"BYOK_HOME": str(tmp_path / "home")}) as typist:
        typist.wait_for("[y/N]")
        typist.type("n")
        assert typist.wait_for_end() == 1


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("module", "code"), [("typer", -signal.SIGINT), ("byok.cli.search", 130)]
)
def test_ctrl_c_in_the_first_moment_shows_no_traceback(module: str, code: int) -> None:
    program = f"""
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["byok", "search", "x"]
from byok.cli import main
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=False, text=True
    )
    assert ended.returncode == code
    assert "Traceback" not in ended.stderr
