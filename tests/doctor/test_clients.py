"""Clients that point at byok, elsewhere, or at byok in the wrong way."""

import json
from pathlib import Path

import pytest

from byok.daemon.token import read_token
from byok.doctor.clients import VARIABLES, check_client, clients
from byok.doctor.results import CannotCheck, CheckState
from byok.doctor.surroundings import Machine
from byok.platform.paths import find_paths
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows

OWN = "http://127.0.0.1:9123"


def settings_with(folder: Path, url: str, token: str) -> str:
    file = folder / "settings.json"
    keys = {
        "augment.advanced.completionURL": url,
        "augment.advanced.apiToken": token,
    }
    file.write_text(json.dumps(keys))
    return str(file)


@pytest.mark.parametrize(
    ("url", "own_token", "state", "said"),
    [
        (OWN, True, CheckState.OK, "points at byok, port 9123"),
        ("http://localhost:9123/", True, CheckState.OK, "points at byok"),
        (OWN, False, CheckState.FAILURE, "token is not the one"),
        (
            "http://127.0.0.1:8000",
            True,
            CheckState.FAILURE,
            "port 8000, and byok is at",
        ),
        ("https://127.0.0.1:9123", True, CheckState.FAILURE, "plain HTTP"),
        ("https://t.api.example/x", True, CheckState.WARNING, "https://t.api.example,"),
        ("http://127.0.0.1:port", True, CheckState.FAILURE, "is none"),
    ],
)
async def test_where_an_editor_points_to(
    tmp_path: Path, url: str, own_token: bool, state: CheckState, said: str
) -> None:
    write_settings("[server]", "port = 9123")
    token = read_token(find_paths().token)
    given = token if own_token else "another-token-0123456789"
    file = settings_with(tmp_path, url, given)
    async with surroundings() as around:
        result = await check_client(around, file)
        assert given not in around.redactor(given)
    assert result.state is state
    assert said in result.found
    assert ("byok connect vscode" in result.cure) is (state is not CheckState.OK)


async def test_the_port_is_that_of_the_running_daemon(tmp_path: Path) -> None:
    async with daemon_rows() as rows:
        token = read_token(find_paths().token)
        file = settings_with(tmp_path, f"http://127.0.0.1:{rows.port}", token)
        async with surroundings() as around:
            assert (await check_client(around, file)).state is CheckState.OK


async def test_without_a_token_nothing_is_created(tmp_path: Path) -> None:
    write_settings("[server]", "port = 9123")
    file = settings_with(tmp_path, OWN, "t")
    async with surroundings() as around:
        with pytest.raises(CannotCheck, match="no token"):
            await check_client(around, file)
    assert not find_paths().token.exists()


async def test_settings_without_byok_or_that_are_broken(tmp_path: Path) -> None:
    empty, broken = tmp_path / "a.json", tmp_path / "b.json"
    empty.write_text("{}")
    broken.write_text("{")
    async with surroundings() as around:
        assert (await check_client(around, str(empty))).state is CheckState.NOT_CHECKED
        result = await check_client(around, str(broken))
    assert (result.state, "cannot be read" in result.found) == (
        CheckState.WARNING,
        True,
    )


async def test_clients_are_editors_and_the_variable(tmp_path: Path) -> None:
    machine = Machine(home=tmp_path)
    async with surroundings(machine, environ={}) as around:
        assert await clients(around) == []
    environ = {VARIABLES: "https://t.api.example"}
    async with surroundings(machine, environ=environ) as around:
        assert await clients(around) == [VARIABLES]
        result = await check_client(around, VARIABLES)
    assert result.state is CheckState.WARNING
    assert "byok connect cli" in result.cure
