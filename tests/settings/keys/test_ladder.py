"""What counts as a key, where it is looked for, and what is told without one."""

import asyncio
import hashlib
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import ConfigError, KeyMissing
from byok.core.redact import Redactor
from byok.settings.keys import clean_key, fingerprint
from byok.settings.keys import vault as vault_module
from byok.settings.keys.ladder import (
    FoundKey,
    KeyLadder,
    KeyLookup,
    KeyPool,
    UpstreamKey,
)
from byok.settings.keys.vault import Vault
from tests.fakes.clock import Clock
from tests.fakes.patience import PATIENCE
from tests.fakes.ring import FakeRing, store_of

URL = "https://api.openai.com/v1"
ENTRY = "openai@https://api.openai.com"
WANTED = KeyLookup("openai", URL, preset_env="OPENAI_API_KEY")


class FakeVault(Vault):
    """A vault without a file."""

    def __init__(self, **keys: str) -> None:
        super().__init__(Path("unused"), {})
        self._keys = keys

    def get(self, entry: str) -> str | None:
        return self._keys.get(entry.partition("@")[0])


def printing(text: str) -> tuple[str, ...]:
    """A key command that prints something."""
    return (sys.executable, "-c", f"print({text!r})")


RUNGS = {
    "systemd credential": "sk-from-credential",
    "BYOK_KEY_OPENAI": "sk-from-own-variable",
    "OPENAI_API_KEY": "sk-from-usual-variable",
    "OS keyring": "sk-from-keyring",
    "vault": "sk-from-vault",
}


@pytest.mark.parametrize("above", range(len(RUNGS)))
def test_key_ladder_takes_the_first_source_that_has_a_key(
    tmp_path: Path, above: int
) -> None:
    kept = dict(list(RUNGS.items())[above:])
    environ = {k: v for k, v in kept.items() if k.isupper()}
    if credential := kept.get("systemd credential"):
        (tmp_path / "byok.openai").write_text(f"{credential}\n")
        environ["CREDENTIALS_DIRECTORY"] = str(tmp_path)
    ring = FakeRing()
    if stored := kept.get("OS keyring"):
        ring.kept["byok", ENTRY] = stored
    found = KeyLadder(
        environ=environ, keyring=store_of(ring), vault=FakeVault(openai=kept["vault"])
    ).find(WANTED)
    source = next(iter(kept))
    assert (found.source, found.value) == (source, kept[source])
    assert ring.calls == (source in ("OS keyring", "vault"))


def test_key_ladder_takes_a_key_as_it_was_typed_and_no_blank_variable() -> None:
    environ = {"BYOK_KEY_OPENAI": " ", "OPENAI_API_KEY": "Bearer sk-own"}
    found = KeyLadder(environ=environ, keyring=store_of(FakeRing())).find(WANTED)
    assert (found.source, found.value) == ("OPENAI_API_KEY", "sk-own")


@pytest.mark.case("B98")
def test_key_ladder_names_the_source_of_an_invalid_key_but_not_the_key() -> None:
    environ = {"OPENAI_API_KEY": "sk-canary 0123"}
    with pytest.raises(ConfigError, match=r"^OPENAI_API_KEY: ") as caught:
        KeyLadder(environ=environ).find(WANTED)
    assert "canary" not in caught.value.sentence


@pytest.mark.parametrize(
    "wanted",
    [
        KeyLookup("openai", URL, "OPENAI_API_KEY", named_env="TEAM_KEY"),
        KeyLookup("openai", URL, "OPENAI_API_KEY", command=printing("")),
    ],
)
def test_key_ladder_with_a_named_source_uses_no_other(wanted: KeyLookup) -> None:
    ring = FakeRing()
    ring.kept["byok", ENTRY] = "sk-ring"
    environ = {"BYOK_KEY_OPENAI": "sk-own", "OPENAI_API_KEY": "sk-usual"}
    with pytest.raises(ConfigError):
        KeyLadder(
            environ=environ, keyring=store_of(ring), vault=FakeVault(openai="sk-vault")
        ).find(wanted)
    assert ring.calls == 0


def of_command(*command: str, seconds: float = PATIENCE) -> str:
    wanted = KeyLookup("openai", URL, command=command)
    return KeyLadder(environ={}, command_seconds=seconds).find(wanted).value


def test_key_command_runs_without_a_shell(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    shown = "import sys; print('sk-' + str(len(sys.argv[1])))"
    trick = f"$(touch {marker}); touch {marker} | `touch {marker}`"
    assert of_command(sys.executable, "-c", shown, trick) == f"sk-{len(trick)}"
    assert not marker.exists()


@pytest.mark.case("B112")
def test_key_command_environment_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ("BYOK_KEY_BOX", "BYOK_VAULT_PASSPHRASE", "OTHER_API_KEY", "PRESET")
    for name in (*keys, "PASSWORD_STORE_DIR"):
        monkeypatch.setenv(name, "sk-canary")
    code = (
        "import os; print(*sorted(n for n, v in os.environ.items() if 'canary' in v))"
    )
    command = (sys.executable, "-c", code)
    wanted = KeyLookup("openai", URL, "PRESET", command=command)
    ladder = KeyLadder(environ={}, command_seconds=PATIENCE)
    assert ladder.find(wanted).value == "PASSWORD_STORE_DIR"


@pytest.mark.case("B109")
@pytest.mark.parametrize("name", ["get-key", "../here/get-key"])
def test_key_command_is_not_searched_in_the_current_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program = here / "get-key"
    program.write_text("#!/bin/sh\necho sk-planted\n")
    program.chmod(0o755)
    monkeypatch.chdir(here)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", str(here), os.defpath]))
    with pytest.raises(ConfigError, match="was not found") as caught:
        of_command(name)
    assert "absolute path" in caught.value.hint
    assert of_command(str(program)) == "sk-planted"


@pytest.mark.case("B109")
def test_key_command_runs_in_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = (
        "import os, pathlib; print(os.getcwd() == str(pathlib.Path.home().resolve()))"
    )
    assert of_command(sys.executable, "-c", shown) == "True"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (("no-such-program-7f3a",), "was not found"),
        ((sys.executable, "-c", "print('sk-canary'); exit(3)"), "exit code 3"),
        (printing(""), "printed nothing"),
        (printing("sk-canary no key"), "api_key_cmd: "),
    ],
)
def test_key_command_that_fails_is_reported_without_its_output(
    command: tuple[str, ...], told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        of_command(*command)
    assert "api_key_cmd" in str(caught.value)
    assert caught.value.hint
    assert "canary" not in caught.value.sentence


def test_key_command_that_hangs_is_given_up() -> None:
    with pytest.raises(ConfigError, match=r"did not answer within 0\.2 seconds"):
        of_command(sys.executable, "-c", "import time; time.sleep(60)", seconds=0.2)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_key_command_children_end_with_it() -> None:
    script = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    with pytest.raises(ConfigError, match="did not answer"):
        of_command(sys.executable, "-c", script, seconds=0.2)


def test_systemd_credential_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "byok.openai").mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "OPENAI_API_KEY": "sk-usual"}
    with pytest.raises(ConfigError, match=r"credential byok\.openai cannot be read"):
        KeyLadder(environ=environ).find(WANTED)


def test_key_with_a_label_has_places_of_its_own(tmp_path: Path) -> None:
    work = KeyLookup("open-ai", URL, label="work-1")
    assert work.title == "open-ai/work-1"
    assert work.entry == f"open-ai/work-1@{work.origin}"
    assert work.own_env == "BYOK_KEY_OPEN_AI__WORK_1"
    (tmp_path / "byok.open-ai.work-1").write_text("sk-labelled")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    found = KeyLadder(environ=environ).find(work)
    assert (found.value, found.source) == ("sk-labelled", "systemd credential")
    with pytest.raises(KeyMissing, match="No key was found for open-ai/work-2") as e:
        KeyLadder(environ={"BYOK_KEY_OPEN_AI": "sk-other"}).find(
            KeyLookup("open-ai", URL, label="work-2"), stores=False
        )
    assert e.value.hint == "Run: byok keys set open-ai/work-2"


@pytest.mark.parametrize(
    ("name", "url", "found"),
    [
        ("openai", "https://api.openai.com/v2", True),
        ("openai", "https://evil.example/v1", False),
        ("openai", "https://api.openai.com:444/v1", False),
        ("other", "https://api.openai.com/v1", False),
    ],
)
def test_stored_key_is_not_given_to_another_origin(
    name: str, url: str, found: bool
) -> None:
    ring = FakeRing()
    ring.kept["byok", ENTRY] = "sk-ring"
    keys = KeyLadder(environ={}, keyring=store_of(ring))
    if found:
        assert keys.find(KeyLookup(name, url)).value == "sk-ring"
    else:
        with pytest.raises(KeyMissing):
            keys.find(KeyLookup(name, url))


def test_key_missing_names_the_sources_tried_and_a_hint(tmp_path: Path) -> None:
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "GROQ_API_KEY": "sk-canary"}
    keys = KeyLadder(environ=environ, keyring=store_of(FakeRing()), vault=FakeVault())
    with pytest.raises(KeyMissing) as caught:
        keys.find(WANTED)
    assert str(caught.value) == (
        "No key was found for openai (https://api.openai.com); looked in: systemd "
        "credential, BYOK_KEY_OPENAI, OPENAI_API_KEY, OS keyring, vault."
    )
    assert caught.value.hint == "Run: byok keys set openai"
    with pytest.raises(KeyMissing) as nameless:  # --upstream https://h.example/v1
        keys.find(KeyLookup("custom", "https://h.example/v1"))
    assert nameless.value.hint == "Run: byok keys set https://h.example"
    assert (caught.value.status, caught.value.code) == (422, "key_missing")


@pytest.mark.case("F38")
def test_keyring_failure_does_not_hide_the_vault() -> None:
    ring = store_of(FakeRing(error=RuntimeError("sk-canary")))
    found = KeyLadder(environ={}, keyring=ring, vault=FakeVault(openai="sk-vault"))
    assert found.find(WANTED).source == "vault"
    with pytest.raises(KeyMissing, match=r"OS keyring \(the OS keyring failed") as told:
        KeyLadder(environ={}, keyring=ring).find(WANTED)
    assert "canary" not in told.value.sentence


KEY = "sk-canary0123456789"


@pytest.mark.parametrize(
    "pasted",
    [
        f"  {KEY}  ",
        f"{KEY}\r\n",
        f'"{KEY}"',
        f'" {KEY} "',
        f"Bearer {KEY}",
        f"Bearer bearer {KEY}",
    ],
)
@pytest.mark.case("B98")
def test_key_validation_removes_what_a_paste_brings_along(pasted: str) -> None:
    assert clean_key(pasted) == KEY


@pytest.mark.parametrize("length", [8, 512])
def test_key_validation_accepts_the_shortest_and_the_longest_key(length: int) -> None:
    assert clean_key("k" * length) == "k" * length


@pytest.mark.parametrize(
    ("pasted", "told"),
    [
        ("", "empty"),
        ("k" * 7, "at least 8"),
        ("k" * 513, "at most 512"),
        (f"{KEY}\r\nX-A: y", "no space"),
        (f"\u200b{KEY}", "ASCII"),
        (f"{KEY}\0", "printable"),
    ],
)
@pytest.mark.case("B98")
def test_key_validation_refuses_an_invalid_key_without_showing_it(
    pasted: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        clean_key(pasted)
    assert KEY not in caught.value.sentence
    assert "kkkk" not in caught.value.sentence


@given(st.text(max_size=600))
@pytest.mark.case("B98")
def test_key_validation_result_can_always_be_sent_in_a_header(pasted: str) -> None:
    try:
        key = clean_key(pasted)
    except ConfigError:
        return
    assert 8 <= len(key) <= 512
    assert key.isascii()
    assert key.isprintable()
    assert key == key.strip()
    assert " " not in key
    assert key in pasted


def test_key_fingerprint_tells_keys_apart_and_reveals_nothing() -> None:
    assert fingerprint(KEY) == hashlib.sha256(KEY.encode()).hexdigest()[:8]
    assert fingerprint(KEY) != fingerprint(f"{KEY}x")


SHORT_KEY = "key-0123456789abcdef"
BOX_URL = "https://api.example.com/v1"


def lookup(
    environ: dict[str, str], wanted: KeyLookup, redactor: Redactor | None = None
) -> UpstreamKey:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    return UpstreamKey(ladder, wanted, redactor or Redactor())


async def test_key_lookup_finds_a_key_once_and_keeps_it_out_of_logs() -> None:
    environ = {"BYOK_KEY_BOX": SHORT_KEY}
    redactor = Redactor()
    key = lookup(environ, KeyLookup("box", BOX_URL), redactor)
    assert await key.get() == SHORT_KEY
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    assert await key.get() == SHORT_KEY
    assert SHORT_KEY not in redactor(f"refused {SHORT_KEY}")


@pytest.mark.parametrize("preset_env", ["OPENAI_API_KEY", ""])
async def test_a_key_stored_in_the_encrypted_file_later_is_found_without_a_restart(
    preset_env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "_N", 2**8)  # cheap
    place, key_file = tmp_path / "vault.json", tmp_path / "vault.key"

    def opened() -> Vault:
        return Vault(place, {}, key_file=key_file)

    ladder = KeyLadder(environ={}, keyring=store_of(FakeRing()), vault=opened())
    key = UpstreamKey(ladder, KeyLookup("box", BOX_URL, preset_env), Redactor())
    if preset_env:
        with pytest.raises(KeyMissing):
            await key.get()
    else:
        assert await key.get() == ""  # it may need none: the refusal tells
        key.forget()
    for value in (SHORT_KEY, "another-0123456789"):
        other_process = opened()
        other_process.create_key_file()
        other_process.set(key.lookup.entry, value)
        assert await key.get() == value
        key.forget()


async def test_key_lookup_for_a_local_server_opens_the_keyring_after_a_refusal() -> (
    None
):
    ring = FakeRing()
    store = store_of(ring)
    wanted = KeyLookup("box", "http://127.0.0.1:9/v1")
    store.set(wanted.entry, SHORT_KEY)
    asked = ring.calls
    ladder = KeyLadder(environ={}, keyring=store)
    key = UpstreamKey(ladder, wanted, Redactor(), local=True)
    assert await key.get() == ""
    assert ring.calls == asked
    key.forget()
    assert await key.get() == SHORT_KEY
    assert ring.calls > asked


class HeldLadder(KeyLadder):
    """Finds what a variable holds when the search begins, and gives it later."""

    def __init__(self, environ: dict[str, str]) -> None:
        super().__init__(environ=environ, keyring=store_of(FakeRing()))
        self.has_read, self.may_give = threading.Event(), threading.Event()

    def find(self, wanted: KeyLookup, *, stores: bool = True) -> FoundKey:
        found = super().find(wanted, stores=stores)
        self.has_read.set()
        assert self.may_give.wait(PATIENCE)
        return found


async def test_a_key_that_changes_while_it_is_looked_up_counts_at_once() -> None:
    """A keyring may ask for its password meanwhile, which takes its time."""
    environ = {"BYOK_KEY_BOX": SHORT_KEY}
    ladder = HeldLadder(environ)
    key = UpstreamKey(ladder, KeyLookup("box", BOX_URL), Redactor())
    looking = asyncio.ensure_future(key.get())
    await asyncio.to_thread(ladder.has_read.wait, PATIENCE)
    environ["BYOK_KEY_BOX"] = "another-0123456789"
    key.forget(everywhere=False)  # as after `byok keys set`
    ladder.may_give.set()
    assert await looking == "another-0123456789"


WORK, HOME = "key-work-0123456789", "key-home-0123456789"
BOTH = {"BYOK_KEY_BOX__WORK": WORK, "BYOK_KEY_BOX__HOME": HOME}


class Box:
    """A pool with the keys `work` and `home`, a clock, and what is not logged."""

    def __init__(self, environ: dict[str, str] | None = None) -> None:
        self.environ = {**BOTH} if environ is None else environ
        self.clock = Clock()
        self.redactor = Redactor()
        ladder = KeyLadder(environ=self.environ, keyring=store_of(FakeRing()))
        keys = [
            UpstreamKey(ladder, KeyLookup("box", BOX_URL, label=label), self.redactor)
            for label in ("work", "home")
        ]
        self.pool = KeyPool(keys, clock=self.clock)


async def test_key_pool_replaces_a_key_until_its_rest_is_over() -> None:
    box = Box()
    key = box.pool.begin()
    assert await key.get() == WORK
    assert key.replace(60)
    assert await key.get() == HOME
    assert not key.replace(30)
    assert await key.get() == HOME
    assert await box.pool.get() == HOME  # it rests shorter
    box.clock.now += 60
    assert await box.pool.get() == WORK


async def test_key_pool_keeps_the_key_of_a_conversation() -> None:
    box = Box()
    key = box.pool.begin("c-1")
    key.replace(60)
    assert await key.get() == HOME
    box.clock.now += 3600
    assert await box.pool.begin("c-1").get() == HOME
    assert await box.pool.begin("c-2").get() == WORK
    assert await box.pool.begin().get() == WORK


async def test_key_pool_goes_on_without_a_key_that_is_missing() -> None:
    box = Box({"BYOK_KEY_BOX__HOME": HOME})
    assert await box.pool.get() == HOME
    with pytest.raises(KeyMissing, match="box/home"):
        await Box({}).pool.get()


async def test_key_pool_forgets_everything_on_a_reload() -> None:
    box = Box({"BYOK_KEY_BOX__HOME": HOME})
    assert await box.pool.get() == HOME
    box.environ |= BOTH
    box.pool.forget(everywhere=False)
    assert await box.pool.get() == WORK


async def test_key_pool_looks_only_the_refused_key_up_again() -> None:
    box = Box()
    key = box.pool.begin()
    await key.get()
    await box.pool.keys[1].get()
    box.environ |= {name: f"{value}-new" for name, value in BOTH.items()}
    key.forget()
    assert await key.get() == f"{WORK}-new"
    key.replace(60)
    assert await key.get() == HOME
