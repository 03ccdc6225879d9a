"""What all commands share: help, exit codes, messages."""

import re
from pathlib import Path

import pytest

from byok.cli import exit_code
from byok.cli.commands import ROWS, load_command
from byok.core.errors import (
    BadRequest,
    ByokError,
    ConfigError,
    KeyMissing,
    UpstreamError,
)
from tests.fakes.commands import Cli


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


@pytest.mark.parametrize("name", ["", "serve", "keys", "index add"])
def test_help_has_a_short_option(cli: Cli, name: str) -> None:
    done = cli(*name.split(), "-h")
    assert (done.code, done.out) == (0, cli(*name.split(), "--help").out)


def test_help_is_shown_without_a_command(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Start with" in done.out + done.err


def test_shell_completion_of_commands(cli: Cli) -> None:
    listed = cli("--help").out
    assert "--install-completion" in listed
    assert "--show-completion" in listed


@pytest.mark.parametrize(
    ("begun", "offered"),
    [("olla", ["ollama", "ollama_cloud"]), ("bo", ["box"]), ("az", ["azure"])],
)
def test_shell_completion_of_upstreams(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, begun: str, offered: list[str]
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__BASE_URL", "https://h/v1")
    monkeypatch.setenv("_BYOK_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"byok serve --upstream {begun}")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert cli().out.split() == offered
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__NO_SETTING", "wrong")
    assert cli().out.split() == [name for name in offered if name != "box"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("nope",),
        ("serve", "--nope"),
        ("connect",),
        ("connect", "emacs"),
        ("keys", "set"),
        ("keys", "set", "openai", "--store", "plain"),
        ("config", "check", "--config"),
    ],
    ids=" ".join,
)
def test_usage_error_exits_with_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "Error" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--upstream", "olama"),
        ("models", "--upstream", "olama"),
        ("keys", "set", "olama"),
        ("keys", "test", "olama"),
        ("keys", "remove", "olama"),
    ],
    ids=" ".join,
)
def test_unknown_upstream_is_reported_with_the_known_ones(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    done = cli(*arguments, stdin="sk-abcdefgh\n")
    assert (done.code, done.out) == (78, "")
    message, hint, _ = done.err.splitlines()
    assert message == "byok: Unknown upstream 'olama'."
    assert "ollama" in hint
    assert "or a URL" in hint


@pytest.mark.parametrize(
    "command", ["serve", "models", "keys list", "config check", "config show"]
)
def test_settings_file_that_is_named_must_exist(
    cli: Cli, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "none.toml"
    done = cli(*command.split(), "--config", path)
    assert (done.code, done.out) == (78, "")
    assert f"{path} does not exist" in done.err


@pytest.mark.parametrize("command", ["token", "serve", "connect cli", "models"])
def test_relative_byok_home_is_refused(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("BYOK_HOME", "byok")
    done = cli(*command.split())
    told = "byok: BYOK_HOME must be an absolute path."
    more = "  More: byok explain config"
    assert (done.code, done.err.splitlines()) == (78, [told, more])


@pytest.mark.parametrize("command", ["token", "serve --upstream demo", "connect cli"])
@pytest.mark.case("B104")
def test_byok_home_that_cannot_be_written_is_a_message_without_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "state").write_text("in the way")
    monkeypatch.setenv("BYOK_HOME", str(home))
    done = cli(*command.split())
    assert (done.code, done.out) == (1, "")
    assert str(home / "state") in done.err
    _, cure, _ = done.err.splitlines()
    assert "BYOK_HOME" in cure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 78),
        (KeyMissing("x"), 78),
        (ByokError("x", code="already_running"), 75),
        (ByokError("x", code="port"), 69),
        (ByokError("x", code="index_in_use"), 75),
        (ByokError("x", code="corrupt_data"), 74),
        (ByokError("x", code="newer_data"), 76),
        (ByokError("x", code="config"), 78),
        (UpstreamError("x"), 1),
        (BadRequest("x"), 1),
    ],
)
def test_exit_code_of_every_kind_of_error(error: ByokError, code: int) -> None:
    assert exit_code(error) == code
