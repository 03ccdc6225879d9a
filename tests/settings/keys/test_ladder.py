"""The order in which a key is looked for, and what is told when there is none."""

import os
import sys
import threading
from pathlib import Path

import pytest

from byok.core.errors import ConfigError, KeyMissing
from byok.settings.keys import KeyLadder, KeyWanted, ladder
from byok.settings.keys.vault import Vault
from tests.fakes.ring import FakeRing, store_of

URL = "https://api.openai.com/v1"
ENTRY = "openai@https://api.openai.com"
WANTED = KeyWanted("openai", URL, preset_env="OPENAI_API_KEY")


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


# --- the order ---

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


@pytest.mark.parametrize("blank", ["", " ", "\n"], ids=repr)
def test_key_ladder_ignores_a_blank_variable(blank: str) -> None:
    environ = {"BYOK_KEY_OPENAI": blank, "OPENAI_API_KEY": "sk-usual"}
    ladder_ = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    assert ladder_.find(WANTED).source == "OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("name", "variable"),
    [("my-box", "BYOK_KEY_MY_BOX"), ("a_b", "BYOK_KEY_A_B"), ("7b", "BYOK_KEY_7B")],
)
def test_key_ladder_prefers_the_upstreams_own_variable(
    name: str, variable: str
) -> None:
    found = KeyLadder(environ={variable: "sk-own"}).find(KeyWanted(name, URL))
    assert (found.source, found.value) == (variable, "sk-own")


@pytest.mark.parametrize("pasted", ["Bearer sk-own", '"sk-own"', " sk-own\r\n"])
def test_key_ladder_cleans_a_key_like_a_typed_one(pasted: str) -> None:
    assert KeyLadder(environ={"OPENAI_API_KEY": pasted}).find(WANTED).value == "sk-own"


@pytest.mark.case("B98")
def test_key_ladder_names_the_source_of_an_invalid_key_but_not_the_key() -> None:
    environ = {"OPENAI_API_KEY": "sk-canary 0123"}
    with pytest.raises(ConfigError, match=r"^OPENAI_API_KEY: ") as caught:
        KeyLadder(environ=environ).find(WANTED)
    assert "canary" not in caught.value.sentence


def test_key_ladder_hides_the_value_of_a_key() -> None:
    found = KeyLadder(environ={"OPENAI_API_KEY": "sk-canary"}).find(WANTED)
    assert "canary" not in f"{found!r} {found}"


# --- a named source is the only one ---


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(
            KeyWanted("openai", URL, "OPENAI_API_KEY", named_env="TEAM_KEY"),
            id="variable",
        ),
        pytest.param(
            KeyWanted("openai", URL, "OPENAI_API_KEY", command=printing("")),
            id="command",
        ),
    ],
)
def test_key_ladder_with_a_named_source_uses_no_other(wanted: KeyWanted) -> None:
    ring = FakeRing()
    ring.kept["byok", ENTRY] = "sk-ring"
    environ = {"BYOK_KEY_OPENAI": "sk-own", "OPENAI_API_KEY": "sk-usual"}
    with pytest.raises(ConfigError):
        KeyLadder(
            environ=environ, keyring=store_of(ring), vault=FakeVault(openai="sk-vault")
        ).find(wanted)
    assert ring.calls == 0


def test_key_ladder_reads_a_named_variable_although_others_are_set() -> None:
    environ = {"BYOK_KEY_OPENAI": "sk-own", "TEAM_KEY": "sk-team"}
    found = KeyLadder(environ=environ).find(KeyWanted("openai", URL, "", "TEAM_KEY"))
    assert (found.source, found.value) == ("TEAM_KEY", "sk-team")


# --- the key command ---


def of_command(*command: str) -> str:
    wanted = KeyWanted("openai", URL, command=command)
    return KeyLadder(environ={}).find(wanted).value


def test_key_command_gives_its_first_line() -> None:
    assert of_command(*printing("sk-first\nuser: me")) == "sk-first"


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
    wanted = KeyWanted("openai", URL, "PRESET", command=command)
    assert KeyLadder(environ={}).find(wanted).value == "PASSWORD_STORE_DIR"


@pytest.mark.case("B109")
@pytest.mark.parametrize("name", ["get-key", "./get-key", "../here/get-key"])
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


def test_key_command_cannot_read_the_terminal() -> None:
    shown = "import sys; print('sk-' + repr(sys.stdin.read()))"
    assert of_command(sys.executable, "-c", shown) == "sk-''"


@pytest.mark.parametrize(
    ("command", "told"),
    [
        pytest.param(("no-such-program-7f3a",), "was not found", id="missing"),
        pytest.param(
            (sys.executable, "-c", "print('sk-canary'); exit(3)"),
            "exit code 3",
            id="non-zero exit",
        ),
        pytest.param(printing(""), "printed nothing", id="no output"),
        pytest.param(printing("\nsk-canary"), "printed nothing", id="empty first line"),
        pytest.param(printing("sk-canary no key"), "api_key_cmd: ", id="no key"),
        pytest.param(printing("sk-canary" * 500), "at most 512", id="endless line"),
        pytest.param(
            (sys.executable, "-c", "import sys; sys.exit('sk-canary')"),
            "exit code 1",
            id="output on stderr",
        ),
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


def test_key_command_that_cannot_be_run_is_reported(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF no program")
    program.chmod(0o755)
    with pytest.raises(ConfigError, match="cannot be run"):
        of_command(str(program))


def test_key_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ladder._COMMAND_SECONDS == 5
    monkeypatch.setattr(ladder, "_COMMAND_SECONDS", 0.2)
    with pytest.raises(ConfigError, match=r"did not answer within 0\.2 seconds"):
        of_command(sys.executable, "-c", "import time; time.sleep(60)")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_key_command_children_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "_COMMAND_SECONDS", 0.2)
    script = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    with pytest.raises(ConfigError, match="did not answer"):
        of_command(sys.executable, "-c", script)


def test_key_command_with_endless_output_is_cut() -> None:
    script = "while True: print('sk-0123456789')"
    assert of_command(sys.executable, "-c", script) == "sk-0123456789"


# --- the systemd credential ---


def test_systemd_credential_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "byok.openai").mkdir()
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "OPENAI_API_KEY": "sk-usual"}
    with pytest.raises(ConfigError, match=r"credential byok\.openai cannot be read"):
        KeyLadder(environ=environ).find(WANTED)


def test_systemd_credential_that_is_absent_leaves_the_next_source(
    tmp_path: Path,
) -> None:
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path), "OPENAI_API_KEY": "sk-usual"}
    assert KeyLadder(environ=environ).find(WANTED).source == "OPENAI_API_KEY"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file")
def test_systemd_credential_is_read_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "byok.openai").symlink_to("/dev/zero")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    with pytest.raises(ConfigError, match="at most 512 characters"):
        KeyLadder(environ=environ).find(WANTED)


# --- several keys of one upstream ---


def test_key_with_a_label_has_places_of_its_own(tmp_path: Path) -> None:
    work = KeyWanted("open-ai", URL, label="work-1")
    assert work.title == "open-ai/work-1"
    assert work.entry == f"open-ai/work-1@{work.origin}"
    assert work.own_env == "BYOK_KEY_OPEN_AI__WORK_1"
    (tmp_path / "byok.open-ai.work-1").write_text("sk-labelled")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    found = KeyLadder(environ=environ).find(work)
    assert (found.value, found.source) == ("sk-labelled", "systemd credential")
    with pytest.raises(KeyMissing, match="No key was found for open-ai/work-2") as e:
        KeyLadder(environ={"BYOK_KEY_OPEN_AI": "sk-other"}).find(
            KeyWanted("open-ai", URL, label="work-2"), stores=False
        )
    assert e.value.hint == "Run: byok keys set open-ai/work-2"


# --- stored keys belong to an origin ---


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com"),
        ("https://api.openai.com/other/path", "https://api.openai.com"),
        ("https://api.openai.com:8443/v1", "https://api.openai.com:8443"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434"),
    ],
)
def test_key_origin_is_scheme_host_and_port(url: str, origin: str) -> None:
    assert KeyWanted("openai", url).entry == f"openai@{origin}"


@pytest.mark.parametrize(
    ("name", "url", "found"),
    [
        ("openai", "https://api.openai.com/v2", True),
        ("openai", "https://evil.example/v1", False),
        ("openai", "https://api.openai.com.evil.example/v1", False),
        ("openai", "https://api.openai.com:444/v1", False),
        ("openai", "http://api.openai.com/v1", False),
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
        assert keys.find(KeyWanted(name, url)).value == "sk-ring"
    else:
        with pytest.raises(KeyMissing):
            keys.find(KeyWanted(name, url))


# --- nothing found ---


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
    assert (caught.value.status, caught.value.code) == (422, "key_missing")


def test_key_missing_hint_for_a_named_variable_is_that_variable() -> None:
    with pytest.raises(KeyMissing, match="looked in: TEAM_KEY") as caught:
        KeyLadder(environ={}).find(KeyWanted("openai", URL, "", "TEAM_KEY"))
    assert "TEAM_KEY" in caught.value.hint
    assert "keys set" not in caught.value.hint


@pytest.mark.case("F38")
def test_keyring_failure_does_not_hide_the_vault() -> None:
    ring = store_of(FakeRing(error=RuntimeError("sk-canary")))
    found = KeyLadder(environ={}, keyring=ring, vault=FakeVault(openai="sk-vault"))
    assert found.find(WANTED).source == "vault"
    with pytest.raises(KeyMissing, match=r"OS keyring \(the OS keyring failed") as told:
        KeyLadder(environ={}, keyring=ring).find(WANTED)
    assert "canary" not in told.value.sentence


@pytest.mark.case("F38")
def test_keyring_that_hangs_costs_one_wait_for_many_upstreams() -> None:
    free = threading.Event()
    ring = FakeRing(wait_for=free)
    keys = KeyLadder(environ={}, keyring=store_of(ring, seconds=0.05))
    for name in ("openai", "groq", "mistral"):
        with pytest.raises(KeyMissing, match="did not answer"):
            keys.find(KeyWanted(name, URL))
    assert ring.calls == 1
    free.set()
