"""byok init: editors are pointed at byok, and the first request is waited for."""

import os
import signal
import threading
from pathlib import Path

import pytest

from byok.cli.asker import YesAsker
from byok.cli.connect import find_machine
from byok.cli.init_steps import (
    describe_client,
    last_request,
    offer_editors,
    wait_for_clients,
    wait_for_first,
)
from byok.clients.locations import ClientKind, find_location
from byok.core.platform.paths import find_paths
from tests.fakes.answers import ScriptedPerson
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.journal_entries import entry, write_journal

URL = "http://127.0.0.1:8317"


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The settings file of a VS Code that is installed, below a home of the test."""
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "AppData"))
    path = find_location(ClientKind.VSCODE, find_machine()).path
    path.parent.mkdir(parents=True)
    return path


def test_only_editors_that_are_there_are_offered(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon_thread(upstream="demo") as daemon:
        person = ScriptedPerson(False, True)
        assert not offer_editors(find_paths(), daemon.url, person)
        assert not editor.exists()
        assert offer_editors(find_paths(), daemon.url, person)
    assert len(person.asked) == 2
    assert daemon.url in editor.read_text()
    assert "byok connect jetbrains" in capsys.readouterr().err


def test_an_editor_without_a_terminal_is_only_told_how(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offer_editors(find_paths(), URL, YesAsker())
    assert not editor.exists()
    assert "byok connect vscode --write" in capsys.readouterr().err


def test_a_trouble_with_one_editor_does_not_end_the_command(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    editor.write_text("{ broken")
    person = ScriptedPerson()
    offer_editors(find_paths(), URL, person)
    assert person.asked == []
    assert str(editor) in capsys.readouterr().err


def test_an_editor_that_points_at_byok_is_not_asked_for(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from byok.cli.connect import open_connector
    from byok.clients.connection import DaemonAddress
    from byok.core.daemon.token import read_token

    paths = find_paths()
    address = DaemonAddress(URL, read_token(paths.token), paths.token, "")
    connector = open_connector(paths)
    connector.carry_out(connector.plan_connect(ClientKind.VSCODE, editor, address))
    person = ScriptedPerson()
    assert offer_editors(paths, URL, person)
    assert person.asked == []
    assert "VS Code points at byok already." in capsys.readouterr().out


def test_the_first_answer_ends_the_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    find_paths().state_dir.mkdir(parents=True)
    failed = entry(outcome="failed", error="upstream_auth", client="vscode/0.600.1")
    write_journal(
        find_paths().journal,
        [entry(client="cli/1"), failed, failed, entry(client="vscode/0.600.1")],
    )
    wait_for_first(find_paths(), 1, 90)
    out, err = capsys.readouterr()
    assert out == "VS Code (extension 0.600.1) is connected, model one:m.\n"
    assert err.count("upstream_auth") == 1


def test_a_request_without_a_model_names_that_of_the_daemon(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with daemon_thread(upstream="demo"):
        write_journal(
            find_paths().journal, [entry(endpoint="/get-models", model="", upstream="")]
        )
        wait_for_first(find_paths(), 0, 90)
    assert "is connected, model demo:echo." in capsys.readouterr().out


def test_without_a_journal_nothing_is_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wait_for_first(find_paths(), 0, 0)
    assert "The journal is off" in capsys.readouterr().err


def test_a_damaged_journal_is_told_and_in_nobodys_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    find_paths().state_dir.mkdir(parents=True)
    find_paths().journal.write_bytes(b"no database" * 1000)
    assert last_request(find_paths()) == 0
    wait_for_first(find_paths(), 0, 90)
    assert "journal.db" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_the_waiting_without_harm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    wait_for_first(find_paths(), 0, 90)
    timer.join()
    assert "goes on without waiting" in capsys.readouterr().err


def test_only_requests_after_the_number_are_given(tmp_path: Path) -> None:
    journal = write_journal(
        tmp_path / "journal.db", [entry(client="cli/1"), entry(client="vscode/2")]
    )
    assert next(wait_for_clients(journal, 1)).client == "vscode/2"


def test_a_request_that_comes_later_is_waited_for(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            write_journal(journal, [entry(client="sdk/3", endpoint="/get-models")])

    found = next(wait_for_clients(journal, 0, pause=pause))
    assert (found.client, len(pauses)) == ("sdk/3", 3)


def test_a_journal_that_was_begun_anew_is_read_from_its_start(tmp_path: Path) -> None:
    journal = write_journal(tmp_path / "journal.db", [entry(client="cli/1")])
    assert next(wait_for_clients(journal, 99)).client == "cli/1"


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("vscode/0.600.1", "VS Code (extension 0.600.1)"),
        ("intellij/0.3", "A JetBrains IDE (plugin 0.3)"),
        ("cli/1.2", "The CLI 1.2"),
        ("sdk/0.1.15", "The SDK 0.1.15"),
        ("openai-js/4.1", "openai-js/4.1"),
        ("other", "A client"),
        ("", "A client"),
    ],
)
def test_a_client_is_named_for_people(client: str, words: str) -> None:
    assert describe_client(client) == words
