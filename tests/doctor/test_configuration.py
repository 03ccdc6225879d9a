"""Settings, those in force, and proxies."""

from typing import Any

import pytest

from byok.doctor.configuration import (
    check_own_prompts,
    check_proxies,
    check_settings_file,
    check_settings_in_force,
)
from byok.doctor.results import CheckState
from byok.platform.paths import find_paths
from tests.fakes.doctors import surroundings, write_settings
from tests.fakes.rows import daemon_rows


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["[server]", "port = 80"], "server.port"),
        (["[server"], "is not valid TOML"),
        (["[network]", 'ca_file = "/no/such.pem"'], "/no/such.pem does not exist"),
        (["[routing]", 'default = "byok:x:y"'], "not configured"),
        (["[serve]", "[log]", 'level = "loud"'], "(1 more)"),
    ],
    ids=str,
)
async def test_settings_that_cannot_be_used_are_named(
    lines: list[str], found: str
) -> None:
    write_settings(*lines)
    async with surroundings() as around:
        result = await check_settings_file(around, "")
    assert result.state is CheckState.FAILURE
    assert found in result.found
    assert result.cure


async def test_missing_settings_are_well_and_a_foreign_variable_is_not() -> None:
    async with surroundings() as around:
        result = await check_settings_file(around, "")
    async with surroundings(environ={"BYOK_PROT": "1"}) as around:
        warning = await check_settings_file(around, "")
    assert (result.state, warning.state) == (CheckState.OK, CheckState.WARNING)
    assert "defaults apply" in result.found
    assert "BYOK_PROT" in warning.found


def told(settings: dict[str, Any]) -> dict[str, Any]:
    file = str(find_paths().config)
    facts = {"file": file, "error": "", "restart": [], **settings}
    return {"/byok/daemon": {"version": "", "settings": facts}}


@pytest.mark.parametrize(
    ("settings", "state", "said", "cure"),
    [
        ({}, CheckState.OK, "as it is", ""),
        ({"error": "bad key"}, CheckState.FAILURE, "bad key", "byok config check"),
        ({"restart": ["server.port"]}, CheckState.WARNING, "server.port", "restart"),
        ({"file": "/x.toml"}, CheckState.WARNING, "/x.toml", "--config /x.toml"),
    ],
    ids=str,
)
async def test_settings_that_are_not_in_force_are_named(
    settings: dict[str, Any], state: CheckState, said: str, cure: str
) -> None:
    from byok.daemon.token import read_token

    async with daemon_rows(told(settings)):
        read_token(find_paths().owner_secret)
        async with surroundings() as around:
            result = await check_settings_in_force(around, "")
    assert result.state is state
    assert said in result.found
    assert cure in result.cure


@pytest.mark.parametrize(
    ("environ", "state"),
    [
        ({}, CheckState.OK),
        ({"https_proxy": "http://p:1"}, CheckState.OK),  # byok's address is plain HTTP
        ({"http_proxy": "http://p:1"}, CheckState.WARNING),
        ({"ALL_PROXY": "socks5://p:1", "NO_PROXY": ""}, CheckState.WARNING),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, CheckState.OK),
        ({"HTTP_PROXY": "http://p:1", "no_proxy": "127.0.0.1"}, CheckState.WARNING),
        (
            {"HTTP_PROXY": "http://p:1", "no_proxy": "127.0.0.1, localhost"},
            CheckState.OK,
        ),
    ],
    ids=str,
)
async def test_a_proxy_must_not_catch_what_is_for_byok(
    environ: dict[str, str], state: CheckState
) -> None:
    async with surroundings(environ=environ) as around:
        result = await check_proxies(around, "")
    assert result.state is state
    if result.cure:
        assert "localhost" in result.cure
        assert "p:1" not in result.found  # it may hold a password


async def test_own_prompts_that_cannot_be_used_are_named_without_their_text() -> None:
    folder = find_paths().prompts
    async with surroundings() as around:
        assert (await check_own_prompts(around, "")).found == "none of your own"
        folder.mkdir(parents=True, mode=0o700)
        (folder / "title.md").write_text("Name it.")
        (folder / "title.md").chmod(0o600)
        well = await check_own_prompts(around, "")
        (folder / "title.md").write_text("\n{{secret}}")
        (folder / "\x1b[2J.md").write_text("x")
        broken = await check_own_prompts(around, "")
    assert (well.state, well.found) == (CheckState.OK, f"1 of your own in {folder}")
    assert broken.state is CheckState.FAILURE
    assert broken.found == r"\x1b[2J.md cannot be used (1 more)"
    assert broken.cure == "byok prompts check"
