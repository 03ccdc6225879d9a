"""Where keys come from, and whether there is a keyring."""

import pytest

from byok.doctor import keys
from byok.doctor.keys import check_key, check_keyring, keys_looked_up
from byok.doctor.results import CheckState
from byok.errors import ConfigError
from tests.fakes.doctors import surroundings, upstream_box, write_settings

KEY = "canary-0123456789"
HERE = "http://127.0.0.1:9/v1"
THERE = "https://models.example/v1"


async def test_each_key_of_an_upstream_is_looked_up() -> None:
    write_settings(*upstream_box(THERE, 'key_names = ["work", "env:KEY_B"]'))
    async with surroundings(environ={"KEY_B": KEY}) as around:
        assert await keys_looked_up(around) == ["box/work", "box/KEY_B"]
        named = await check_key(around, "box/KEY_B")
        stored = await check_key(around, "box/work")
        assert KEY not in around.redactor(KEY)  # it is known as a secret from now on
    assert (named.state, named.found) == (CheckState.OK, "from KEY_B")
    assert stored.state is CheckState.FAILURE
    assert stored.cure == "Run: byok keys set box/work"


@pytest.mark.parametrize("url", [HERE, THERE])
async def test_an_upstream_of_the_users_own_needs_no_key(url: str) -> None:
    write_settings(*upstream_box(url))
    async with surroundings(environ={}) as around:
        result = await check_key(around, "box")
    assert (result.state, "without" in result.found) == (CheckState.OK, True)


async def test_a_hosted_preset_without_a_key_fails() -> None:
    write_settings("[upstreams.groq]")
    async with surroundings(environ={}) as around:
        result = await check_key(around, "groq")
        ring = await check_keyring(around, "")
    assert result.state is CheckState.FAILURE
    assert "byok keys set groq" in result.cure
    assert ring.state is CheckState.WARNING  # a keyring could hold it
    assert "vault" in ring.cure


async def test_a_failing_command_is_named_with_its_cure() -> None:
    write_settings(*upstream_box(THERE, 'api_key_cmd = ["/no/such/program"]'))
    async with surroundings() as around:
        result = await check_key(around, "box")
    assert result.state is CheckState.FAILURE
    assert "cannot be run" in result.found
    assert "[upstreams.box]" in result.cure


async def test_a_slow_source_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_SLOW_SECONDS", 0.0)
    write_settings(*upstream_box(THERE, 'api_key_env = "KEY_A"'))
    async with surroundings(environ={"KEY_A": KEY}) as around:
        result = await check_key(around, "box")
    assert result.state is CheckState.WARNING
    assert "the first chat waits" in result.found
    assert KEY not in result.found


async def test_a_keyring_that_is_missing_and_not_needed_is_well() -> None:
    write_settings(*upstream_box(THERE, 'api_key_env = "KEY_A"'))
    async with surroundings(environ={}) as around:
        result = await check_keyring(around, "")
    assert result.state is CheckState.OK
    assert "no OS keyring" in result.found


async def test_a_keyring_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ring:
        def backend(self) -> str:
            return "Ring of the desktop"

    monkeypatch.setattr(keys, "KeyringStore", Ring)
    async with surroundings() as around:
        assert (await check_keyring(around, "")).found == "Ring of the desktop"


async def test_a_keyring_that_hangs_is_a_warning_where_it_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ring:
        def backend(self) -> str:
            raise ConfigError("it did not answer", hint="Unlock it")

    write_settings("[upstreams.groq]")
    monkeypatch.setattr(keys, "KeyringStore", Ring)
    async with surroundings(environ={}) as around:
        result = await check_keyring(around, "")
    assert (result.state, result.cure) == (CheckState.WARNING, "Unlock it")
