"""byok keys, with the vault; test_secret_service.py has the OS keyring."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from byok.settings.keys import fingerprint
from byok.settings.keys import vault as vault_module
from byok.wiring.key_sources import make_ladder
from tests.fakes.commands import Cli
from tests.fakes.daemon import ask_chat, daemon_thread, write_settings
from tests.fakes.official import TOKEN, FakeOfficial, whole
from tests.fakes.program import needs_terminal
from tests.fakes.upstream import FakeUpstream

KEY = "sk-canary0123456789"


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A passphrase, and a cheap scrypt inside this process."""
    monkeypatch.setenv("BYOK_VAULT_PASSPHRASE", "correct horse")
    monkeypatch.setattr(vault_module, "_N", 2**8)


@pytest.mark.usefixtures("vault")
def test_a_key_is_stored_listed_and_removed(cli: Cli) -> None:
    done = cli("keys", "set", "openai", "--store", "vault", stdin=f" Bearer {KEY}\n")
    assert (done.code, done.err) == (0, "")
    assert "https://api.openai.com" in done.out
    assert fingerprint(KEY) in done.out
    listed = cli("keys", "list", "--json")
    row = {"upstream": "openai", "source": "vault", "fingerprint": fingerprint(KEY)}
    row |= {"error": "", "cure": "byok keys set openai"}
    assert json.loads(listed.out) == [{**row, "local": False}]
    table = cli("keys", "list").out.splitlines()
    assert table[1].split() == ["openai", "vault", fingerprint(KEY)]
    removed = cli("keys", "remove", "openai", "--store", "vault")
    assert (removed.code, removed.err) == (0, "")
    again = cli("keys", "remove", "openai", "--store", "vault")
    assert (again.code, again.out) == (1, "")
    assert "There is no key for openai" in again.err
    assert not any(KEY in f"{d.out}{d.err}" for d in (done, listed, removed, again))


@pytest.mark.usefixtures("vault")
def test_a_vault_that_cannot_be_opened_is_no_lack_of_keys(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = "the vault's passphrase is wrong"
    cli("keys", "set", "openai", "--store", "vault", stdin=f"{KEY}\n")
    monkeypatch.setenv("BYOK_VAULT_PASSPHRASE", "wrong")
    done = cli("keys", "list")
    assert done.code == 0
    assert f"cannot read keys from the vault ({told})\n" in done.err
    removing = cli("keys", "remove", "openai", "--store", "vault")
    assert (removing.code, told in removing.err) == (78, True)


@pytest.mark.usefixtures("vault")
def test_what_was_not_read_of_a_key_to_remove_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the vault is missed for its passphrase, not for lack of a keyring."""
    nothing = cli("keys", "remove", "openai")
    assert "No stored key of openai was found: no OS keyring" in nothing.err
    assert "BYOK_KEY" not in nothing.err
    cli("keys", "set", "openai", "--store", "vault", stdin=f"{KEY}\n")
    monkeypatch.setenv("BYOK_VAULT_PASSPHRASE", "")
    locked = cli("keys", "remove", "openai")
    assert (locked.code, "; the vault is locked." in locked.err) == (78, True)
    assert "Set BYOK_VAULT_PASSPHRASE" in locked.err


def test_a_machine_without_a_keyring_needs_no_passphrase_with_a_key_file(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "_N", 2**8)
    refused = cli("keys", "set", "openai", stdin=f"{KEY}\n")
    assert (refused.code, refused.out) == (78, "")
    assert "byok keys set openai --store key-file" in refused.err
    assert "BYOK_KEY_OPENAI" in refused.err
    paths = find_paths()
    assert not paths.vault.exists()
    stored = cli("keys", "set", "openai", "--store", "key-file", stdin=f"{KEY}\n")
    assert (stored.code, stored.err) == (0, "")
    if os.name == "posix":
        assert paths.vault_key.stat().st_mode & 0o777 == 0o600
    again = cli("keys", "set", "groq", stdin=f"{KEY}-2\n")  # the store that works here
    assert (again.code, again.err) == (0, "")
    rows = json.loads(cli("keys", "list", "--json").out)
    found = {row["upstream"]: row["source"] for row in rows}
    assert found == {"groq": "vault", "openai": "vault"}
    vault = make_ladder(paths, {}).vault  # as a daemon without variables reads it
    assert vault is not None
    assert vault.get("openai@https://api.openai.com") == KEY


def test_a_vault_that_has_a_key_file_says_so_instead_of_taking_a_passphrase(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "_N", 2**8)
    words = ("keys", "set", "openai", "--store")
    assert cli(*words, "key-file", stdin=f"{KEY}\n").err == ""
    stored = cli(*words, "vault", stdin=f"{KEY}\n")
    assert stored.code == 0
    assert str(find_paths().vault_key) in stored.err
    monkeypatch.setenv("BYOK_VAULT_PASSPHRASE", "correct horse")
    assert cli("keys", "set", "openai", "--store", "vault", stdin=f"{KEY}\n").code == 78


@pytest.mark.usefixtures("vault")
def test_a_key_file_never_replaces_the_passphrase_of_a_vault(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("keys", "set", "openai", "--store", "vault", stdin=f"{KEY}\n")
    monkeypatch.setenv("BYOK_VAULT_PASSPHRASE", "")
    refused = cli("keys", "set", "groq", "--store", "key-file", stdin=f"{KEY}\n")
    assert refused.code == 78
    assert not find_paths().vault_key.exists()
    tried = cli("keys", "test", "openai")
    assert "BYOK_VAULT_PASSPHRASE" in tried.err
    assert "Run: byok keys set" not in tried.err


async def test_the_running_daemon_is_asked_for_its_keys(
    cli: Cli, fake: FakeUpstream
) -> None:
    """A key in the environment of the daemon is not in that of another terminal."""
    write_settings(f'[upstreams.fake]\nbase_url = "{fake.url}"\n')

    def both() -> tuple[str, str, str]:
        with daemon_thread(upstream="", environ={"BYOK_KEY_FAKE": KEY}):
            listed = cli("keys", "list", "--json")
            tried = cli("keys", "test", "fake")
        return listed.out, tried.out, tried.err

    listed, tried, err = await asyncio.to_thread(both)
    row = {"upstream": "fake", "source": "BYOK_KEY_FAKE", "error": "", "local": True}
    row |= {"fingerprint": fingerprint(KEY), "cure": "byok keys set fake"}
    assert json.loads(listed) == [row]
    assert re.match(r"fake \(http://127.0.0.1:\d+\) listed 1 model", tried)
    assert "any key" in err
    assert fake.list_headers[-1]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.usefixtures("vault")
async def test_the_running_daemon_uses_no_key_that_a_command_replaced_or_removed(
    cli: Cli, fake: FakeUpstream
) -> None:
    write_settings(f'[upstreams.fake]\nbase_url = "{fake.url}"\nmodel = "m"\n')
    where = ("fake", "--store", "vault")
    keys = {"BYOK_KEY_FAKE": KEY}

    def steps() -> None:
        with daemon_thread(upstream="", environ=keys) as daemon:
            ask_chat(daemon, "Hello!")
            keys["BYOK_KEY_FAKE"] = f"{KEY}-2"
            cli("keys", "set", *where, stdin=f"{KEY}\n")
            ask_chat(daemon, "Hello!")
            keys["BYOK_KEY_FAKE"] = f"{KEY}-3"
            cli("keys", "remove", *where)
            ask_chat(daemon, "Hello!")

    await asyncio.to_thread(steps)
    used = [headers["Authorization"] for headers in fake.headers]
    assert used == [f"Bearer {KEY}{number}" for number in ("", "-2", "-3")]


async def test_a_missing_key_of_a_server_without_a_name_is_told_by_its_address(
    cli: Cli, fake: FakeUpstream, vault: None
) -> None:
    origin = fake.url.removesuffix("/v1")

    def steps() -> tuple[str, str, str]:
        with daemon_thread(upstream=fake.url):
            named = cli("keys", "set", "custom", "--store", "vault", stdin=f"{KEY}\n")
            listed = cli("keys", "list")
            stored = cli("keys", "set", origin, "--store", "vault", stdin=f"{KEY}\n")
        return named.err, listed.err, stored.out

    named, listed, stored = await asyncio.to_thread(steps)
    assert "URL" in named
    assert f"byok keys set {origin}\n" in listed
    assert f"for {origin}" in stored


def test_each_upstream_is_listed_with_the_source_of_its_key(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    monkeypatch.setenv("TEAM_KEY", "no key")
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__BASE_URL", "https://box.example")
    monkeypatch.setenv("BYOK_UPSTREAMS__BAD__BASE_URL", "https://bad.example")
    monkeypatch.setenv("BYOK_UPSTREAMS__BAD__API_KEY_ENV", "TEAM_KEY")
    table = cli("keys", "list")
    cells = [line.split() for line in table.out.splitlines()[1:]]
    assert cells == [
        ["box", "none"],
        ["bad", "none"],
        ["groq", "GROQ_API_KEY", fingerprint(KEY)],
    ]
    assert "the key of bad cannot be used: TEAM_KEY: A key has" in table.err


@pytest.mark.parametrize("command", [("keys", "test", "fake"), ("models", "--json")])
async def test_a_key_that_an_upstream_repeats_is_not_printed(
    cli: Cli,
    fake: FakeUpstream,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    odd = "zq-verysecret+value/0123456789"
    fake.models_error = "bad one {key} for you"
    monkeypatch.setenv("BYOK_UPSTREAMS__FAKE__BASE_URL", fake.url)
    monkeypatch.setenv("BYOK_KEY_FAKE", odd)
    done = await asyncio.to_thread(cli, *command)
    assert "bad one" in done.out + done.err
    assert odd not in done.out + done.err


@pytest.mark.parametrize(
    ("token", "code", "told"),
    [
        (TOKEN, 0, "The official service at http://127.0.0.1:"),
        (f"{TOKEN}x", 1, "official: it answered 401."),
    ],
)
async def test_keys_official_token_is_tested(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, token: str, code: int, told: str
) -> None:
    async with FakeOfficial("/base", token) as official:
        script = whole() if code == 0 else whole(b"", 401)
        official.expect("/get-models", b"{}", script)
        monkeypatch.setenv("BYOK_ROUTING__OFFICIAL__BASE_URL", official.url)
        monkeypatch.setenv("BYOK_KEY_OFFICIAL", token)
        done = await asyncio.to_thread(cli, "keys", "test", "official")
    assert done.code == code
    assert told in done.out + done.err
    assert TOKEN not in done.out + done.err


@needs_terminal
def test_a_person_is_asked_in_their_language(tmp_path: Path) -> None:
    from tests.fakes.terminal import typing_to

    env = {"BYOK_HOME": str(tmp_path / "home"), "LC_ALL": "zh_CN.UTF-8"}
    env["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    words = ("keys", "set", "groq", "--store", "vault")
    with typing_to(*words, env=env, echoes=True) as typist:
        typist.wait_for("groq（https://api.groq.com）的密钥")
        typist.type_unseen(KEY)
        for question in ("口令", "再输入一次"):
            typist.wait_for(question)
            typist.type_unseen("correct horse")
        assert typist.wait_for_end() == 0
    assert KEY not in typist.shown
