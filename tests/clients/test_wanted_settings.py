"""What each client's settings have to say."""

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from byok.clients.connection import FORMATS, NEEDS_MODEL, DaemonAddress, settings_for
from byok.clients.locations import ClientKind
from tests.fakes.settings_files import BOTH, CONTINUE_FULL, OBJECT, OWN_PROVIDER

TOKEN = "token-of-byok-0123456789"
DAEMON = DaemonAddress(
    "http://127.0.0.1:8317", TOKEN, PurePosixPath("/s/token"), "byok:box:m"
)


def paths(client: ClientKind, text: str = "") -> dict[str, object]:
    return {" > ".join(path): v for path, v in settings_for(client, DAEMON, text)}


@pytest.mark.parametrize("client", [kind for kind in ClientKind if kind.is_editor])
def test_wanted_settings_of_editors_are_the_documented_pair(client: ClientKind) -> None:
    assert paths(client) == {
        "augment.advanced.completionURL": "http://127.0.0.1:8317",
        "augment.advanced.apiToken": TOKEN,
    }


def test_wanted_settings_of_editors_stand_in_an_object_that_there_is() -> None:
    assert list(paths(ClientKind.VSCODE, OBJECT)) == [
        "augment.advanced > completionURL",
        "augment.advanced > apiToken",
    ]
    assert list(paths(ClientKind.VSCODE, BOTH)) == [
        "augment.advanced > completionURL",
        "augment.advanced.completionURL",
        "augment.advanced > apiToken",
    ]


def test_wanted_settings_of_codex_name_the_file_of_the_token() -> None:
    found = paths(ClientKind.CODEX)
    assert found["model_providers > byok > base_url"] == "http://127.0.0.1:8317/v1"
    assert found["model_providers > byok > auth > command"] == "cat"
    assert found["model_providers > byok > auth > args"] == ["/s/token"]
    assert TOKEN not in str(found)


def test_wanted_settings_of_codex_on_windows_use_its_own_command() -> None:
    daemon = DAEMON._replace(token_file=PureWindowsPath("C:\\byok\\token"))
    found = dict(settings_for(ClientKind.CODEX, daemon, windows=True))
    here = ("model_providers", "byok", "auth")
    assert found[*here, "command"] == "cmd"
    assert found[*here, "args"] == ["/d", "/c", "type", "C:\\byok\\token"]


def test_wanted_settings_of_codex_leave_a_variable_for_the_token() -> None:
    assert [p for p in paths(ClientKind.CODEX, OWN_PROVIDER) if "auth" in p] == []


def test_wanted_settings_of_opencode_name_the_file_of_the_token() -> None:
    found = paths(ClientKind.OPENCODE)
    assert found["provider > byok > options > apiKey"] == "{file:/s/token}"
    assert found["model"] == "byok/byok:box:m"
    assert "provider > byok > models > byok:box:m > name" in found


def test_wanted_settings_of_aider_and_continue() -> None:
    assert paths(ClientKind.AIDER)["model"] == "openai/byok:box:m"
    assert list(paths(ClientKind.CONTINUE)) == [
        *("name", "version", "schema"),
        "models > name=byok",
    ]
    assert list(paths(ClientKind.CONTINUE, CONTINUE_FULL)) == ["models > name=byok"]


def test_wanted_settings_are_known_for_every_client_with_a_file() -> None:
    assert set(ClientKind) - set(FORMATS) == {
        *(ClientKind.JETBRAINS, ClientKind.CLI, ClientKind.SDK)
    }
    assert set(FORMATS) > NEEDS_MODEL
