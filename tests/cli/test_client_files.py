"""Changes of clients' settings files, as commands show and make them."""

import shlex
from pathlib import Path

import pytest

from byok.cli.client_files import (
    Answer,
    find_machine,
    make_change,
    open_connector,
    write_command,
)
from byok.client_settings.client_kind import ClientKind
from byok.client_settings.run_place import RunPlace
from byok.client_settings.wanted_settings import DaemonAddress
from byok.errors import ConfigError
from byok.redact import Redactor
from tests.fakes.commands import Cli
from tests.fakes.daemon_thread import daemon_thread

DAEMON = DaemonAddress("http://127.0.0.1:1", "token-of-byok-0123", Path("/t"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


def test_client_files_belong_to_the_home_of_the_user(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")
    machine = find_machine()
    assert (machine.home, machine.place) == (home, RunPlace.CONTAINER)
    assert open_connector().home == home


@pytest.mark.parametrize("mode", ["yes", "dry_run", "ask"])
def test_client_file_is_changed_only_after_an_answer(
    home: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    file = home / "settings.json"
    file.write_text("{}")
    connector, redactor = open_connector(), Redactor()
    redactor.add(DAEMON.token)
    change = connector.plan_connect(ClientKind.VSCODE, file, DAEMON)
    answer = Answer(mode == "yes", mode == "dry_run", "byok connect vscode --write")
    if mode == "ask":
        with pytest.raises(ConfigError, match="no terminal"):
            make_change(connector, change, redactor, answer)
    else:
        assert make_change(connector, change, redactor, answer) is (mode == "yes")
    assert (file.read_text() == "{}") is (mode != "yes")
    out, err = capsys.readouterr()
    assert '+    "augment.advanced.completionURL": "http://127.0.0.1:1",' in out
    assert DAEMON.token not in out + err
    assert ("Nothing was written." in err) is (mode == "dry_run")


def test_a_command_for_scripts_names_the_same_file() -> None:
    options = {"file": Path("a b/it's"), "profile": "", "model": "m"}
    command = write_command("byok", "connect", "vscode", **options)
    assert shlex.split(command)[:4] == ["byok", "connect", "vscode", "--file"]
    assert shlex.split(command)[4:] == [str(options["file"]), "--model", "m"]
    assert write_command("byok", "disconnect", "cursor", file=None) == (
        "byok disconnect cursor"
    )


@pytest.mark.parametrize("verb", ["connect", "disconnect"])
def test_without_a_terminal_the_whole_command_is_told(
    home: Path, cli: Cli, verb: str
) -> None:
    file = home / "own.json"
    file.write_text("{}")
    if verb == "disconnect":
        with daemon_thread():
            done = cli("connect", "vscode", "--write", "--yes", "--file", file)
        assert done.code == 0
    write = ["--write"] if verb == "connect" else []
    with daemon_thread():
        done = cli(verb, "vscode", *write, "--file", file)
    told = shlex.join(["byok", verb, "vscode", *write, "--file", str(file), "--yes"])
    assert told in done.err.replace("\n", " ")
