"""What all commands share: help, exit codes, messages."""

import re
from pathlib import Path

import pytest

from byok.cli import exit_code
from byok.errors import BadRequest, ByokError, ConfigError, KeyMissing, UpstreamError
from tests.fakes.commands import Cli

# What a person must be able to read in a command's help.
HELP = {
    "": "Start with: byok init",
    "init": "only adds lines to the settings file",
    "serve": "first local server that responds",
    "token": "rotate",
    "token show": "nothing else",
    "token rotate": "old one stops working",
    "keys": "set",
    "keys set": "read from standard input",
    "keys list": "where the key of each upstream comes from",
    "keys test": "model list with it",
    "keys remove": "Remove a stored key",
    "stop": "wait until it has ended",
    "restart": "with the options it was started with",
    "reload": "read its settings and keys again",
    "models": "what is known about them, and the defaults",
    "probe": "Test what a model supports",
    "doctor": "how to fix each problem",
    "explain": "likely causes, what to do",
    "connect": "point a client at the running daemon",
    "config": "show",
    "config path": "path of the settings file",
    "config init": "Create the settings file",
    "config example": "every setting with its default",
    "config check": "without starting",
    "config show": "without secrets",
    "version": "version",
    "upgrade": "--extra",
    "uninstall": "--keep-keys",
    "status": "3 if not",
    "index": "index --estimate DIR",
    "index status": "Show the indexed folders",
    "index add": "up to date from now on",
    "index remove": "remove it from the index",
    "index rebuild": "Rebuild the whole index",
    "index why": "which rule excludes it",
    "index estimate": "builds nothing",
    "embed": "Manage the vectors (embeddings) of your code",
    "embed status": "the embedding model and the number",
    "embed estimate": "sends nothing",
    "embed enable": "may be sent to the embedding model",
    "embed disable": "Send nothing and use no vectors",
    "embed pause": "Stop creating vectors",
    "embed resume": "Continue creating vectors",
    "embed clear": "Remove all vectors",
    "embed push": "to your team's index",
    "embed pull": "from your team's index",
    "report": "Look through it before you share it",
    "replay": "this version of byok reads the recorded bytes",
    "capture": "without secrets",
    "capture on": "Your code and messages are kept",
    "capture off": "until they are a day old",
    "capture status": "whether requests are captured",
    "capture list": "the daemon need not run",
    "capture show": "what passed on each hop",
    "capture clear": "Delete all captures",
    "disconnect": "restore the client's previous settings file",
    "log": "how they ended",
    "usage": "their cost in US dollars",
    "service": "from login on, and again after a crash",
    "service install": "starts at login, and again after a crash",
    "service uninstall": "settings, keys and the index stay",
    "service start": "Start the installed service",
    "service stop": "no request starts it meanwhile",
    "service restart": "after an update",
    "service status": "whether byok answers",
    "service logs": "last lines of byok's log",
    "prompts": "replace them with your own",
    "prompts list": "which of them are your own",
    "prompts show": "as a model receives it",
    "prompts edit": "$EDITOR",
    "prompts diff": "differ from the shipped ones",
    "prompts check": "slots, conditions",
    "prompts try": "compare how they did",
    "search": "contains the current folder",
    "dashboard": "valid once, for five minutes",
    "mcp": "over standard input and output",
}


def commands(cli: Cli, name: str) -> list[str]:
    """Return the commands that the help of a group lists."""
    return re.findall(r"^│ ([a-z]+) {2,}\S", cli(*name.split(), "--help").out, re.M)


@pytest.mark.parametrize("name", HELP, ids=lambda name: name or "byok")
def test_help_of_every_command_says_what_it_does(cli: Cli, name: str) -> None:
    done = cli(*name.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert HELP[name] in " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.out).split())


@pytest.mark.parametrize("name", ["", "serve", "keys", "index add"])
def test_help_has_a_short_option(cli: Cli, name: str) -> None:
    done = cli(*name.split(), "-h")
    assert (done.code, done.out) == (0, cli(*name.split(), "--help").out)


def test_help_table_of_this_test_has_every_command(cli: Cli) -> None:
    top = commands(cli, "")
    groups_of = ("token", "keys", "config", "index", "embed", "prompts", "service")
    names = (*groups_of, "capture")
    groups = {name: commands(cli, name) for name in names}
    known = {"", *top, *(f"{g} {c}" for g, below in groups.items() for c in below)}
    assert known == set(HELP)


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
