"""byok init: upstream, key, settings, daemon and editors, as a person answers."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer
from aiohttp import web
from aiohttp.test_utils import TestServer
from msgspec.structs import replace

from byok.cli.init_steps import (
    Setup,
    can_install_service,
    choose_candidate,
    describe_client,
    find_models,
    offer_editors,
    run_daemon,
    show_candidates,
    wait_for_first,
    write_settings,
)
from byok.cli.init_survey import Candidate, ChosenModel, FoundBy
from byok.cli.terminal import Asker
from byok.clients.locations import ClientKind, find_location, find_machine
from byok.core.errors import ConfigError, KeyMissing, UpstreamError
from byok.core.platform.paths import find_paths
from byok.dialects.model_facts import ModelFacts
from byok.dialects.presets import OPENAI_CHAT, PRESETS, Preset
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder, fingerprint
from byok.settings.keys.keyring_store import KeyringStore
from byok.settings.keys.vault import Vault
from tests.fakes.daemon import daemon_thread
from tests.fakes.daemon import write_settings as write_file
from tests.fakes.journal_entries import entry, write_journal
from tests.fakes.ring import FakeRing, store_of


class ScriptedPerson(Asker):
    """Answers in order; None stands for Ctrl-C. `asked` are the questions."""

    def __init__(self, *answers: str | bool | None) -> None:
        super().__init__(is_person=True)
        self.asked: list[str] = []
        self._answers = [*answers]

    def _next(self, question: str) -> str | bool:
        self.asked.append(question)
        answer = self._answers.pop(0)
        if answer is None:
            raise click.Abort
        return answer

    def confirm(self, question: str, *, default: bool = True) -> bool:
        answer = self._next(question)
        assert isinstance(answer, bool)
        return answer

    def text(self, question: str, default: str) -> str:
        return str(self._next(question)) or default

    def secret(self, question: str, *, is_new: bool = False) -> str:
        return str(self._next(question))


SERVER = Candidate(
    "ollama",
    UpstreamSettings(type="ollama"),
    "http://127.0.0.1:11434",
    FoundBy.SERVER,
    (ModelFacts("m"),),
)
VENDOR = Candidate(
    "openai",
    UpstreamSettings(type="openai"),
    "https://api.openai.com/v1",
    FoundBy.KEY,
    key_source="OPENAI_API_KEY",
)
BROKEN = replace(SERVER, name="vllm", trouble="it wants a key")
NOBODY = Asker("byok init --yes")


def make_setup(
    asker: Asker,
    settings: Settings | None = None,
    ladder: KeyLadder | None = None,
    keyring: KeyringStore | None = None,
) -> Setup:
    paths = find_paths()
    vault = Vault(paths.vault, {}, key_file=paths.vault_key)
    keyring = keyring or KeyringStore()  # its backend is the null one
    ladder = ladder or KeyLadder(environ={}, keyring=keyring, vault=vault)
    own = settings or load_settings(paths.config)
    return Setup(own, paths, asker, ladder, keyring, vault)


def choose(
    candidates: list[Candidate],
    asker: Asker,
    wanted: str = "",
    settings: Settings | None = None,
    **environ: str,
) -> Candidate:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    return choose_candidate(candidates, wanted, make_setup(asker, settings, ladder))


def test_what_was_found_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = replace(SERVER, name="vllm", trouble="\x1b]0;mine\x07")
    show_candidates([SERVER, VENDOR, hostile])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        *("1", "ollama", "runs", "on", "this", "machine"),
        *("http://127.0.0.1:11434", "1", "model"),
    ]
    assert "OPENAI_API_KEY" in lines[2]
    assert "\x1b" not in lines[3]


@pytest.mark.parametrize(
    ("answer", "name"),
    [("", "ollama"), ("1", "ollama"), ("2", "openai"), ("openai", "openai")],
)
def test_a_person_chooses_by_number_or_name(answer: str, name: str) -> None:
    assert choose([SERVER, VENDOR], ScriptedPerson(answer)).name == name


@pytest.mark.parametrize("wrong", ["0", "99999999999", "nonsense", ""])
def test_a_person_is_asked_again_after_a_wrong_answer(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    person = ScriptedPerson(wrong, "demo")
    candidates = [SERVER, VENDOR] if wrong else [BROKEN]
    assert choose(candidates, person).name == "demo"
    assert len(person.asked) == 2
    assert capsys.readouterr().err


def test_a_person_may_name_what_was_not_found() -> None:
    person = ScriptedPerson("openrouter")
    named = choose([], person, OPENROUTER_API_KEY="sk-12345678")
    assert "number" not in person.asked[0]  # nothing is listed
    assert (named.found_by, named.key_source) == (FoundBy.NAME, "OPENROUTER_API_KEY")
    local = choose([], ScriptedPerson("http://127.0.0.1:9000/v1"))
    assert (local.name, local.section.base_url) == (
        "custom",
        "http://127.0.0.1:9000/v1",
    )


def test_nobody_gets_the_only_one_and_nothing_unclear() -> None:
    assert choose([BROKEN, VENDOR], NOBODY).name == "openai"
    with pytest.raises(ConfigError, match="ollama, openai") as caught:
        choose([SERVER, VENDOR], NOBODY)
    assert "--upstream" in caught.value.hint


def test_another_custom_upstream_is_not_replaced() -> None:
    sections = {"custom": {"base_url": "http://127.0.0.1:1/v1"}}
    settings = load_settings(find_paths().config, {"upstreams": sections})
    with pytest.raises(ConfigError, match="another upstream"):
        choose([], NOBODY, "http://127.0.0.1:2/v1", settings)


@pytest.mark.parametrize("candidates", [[], [BROKEN]])
def test_what_was_shown_is_not_said_again_where_nobody_can_choose(
    candidates: list[Candidate], capsys: pytest.CaptureFixture[str]
) -> None:
    show_candidates(candidates)
    shown = capsys.readouterr()
    with pytest.raises(ConfigError) as caught:
        choose(candidates, NOBODY)
    assert str(caught.value) not in shown.out + shown.err
    assert "No model server" not in str(caught.value)  # one may run, and want a key
    assert "--upstream" in caught.value.hint


KEY, WRONG = "sk-canary0123456789", "sk-refused-9876543210"


class Vendor:
    """A vendor that takes one key; its preset is `vendor`."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.url = ""

    async def list(self, request: web.Request) -> web.Response:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.append(key)
        if key != KEY:
            error = {"error": {"message": f"bad key {key}"}}
            return web.json_response(error, status=401)
        return web.json_response({"data": [{"id": "m"}]})


@pytest.fixture
def vendor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    """Serve in a thread of its own, as the command has its own loop."""
    made, loop = Vendor(), asyncio.new_event_loop()
    app = web.Application()
    app.router.add_get("/v1/models", made.list)
    server = TestServer(app, loop=loop)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start_server(), loop).result()
    made.url = str(server.make_url("/v1"))
    preset = Preset({OPENAI_CHAT: made.url}, "VENDOR_API_KEY")
    monkeypatch.setitem(PRESETS, "vendor", preset)
    yield made
    asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def candidate(url: str, source: str = "", **fields: object) -> Candidate:
    section = UpstreamSettings.model_validate({"type": "vendor", **fields})
    return Candidate("vendor", section, url, FoundBy.NAME, key_source=source)


def find(
    one: Candidate, asker: Asker, ring: FakeRing | None = None, **environ: str
) -> list[str]:
    store = store_of(ring or FakeRing())
    ladder = KeyLadder(environ=environ, keyring=store)
    models = find_models(one, make_setup(asker, None, ladder, store))
    return [model.id for model in models]


def test_a_new_key_is_tried_before_it_is_stored(
    vendor: Vendor, capsys: pytest.CaptureFixture[str]
) -> None:
    ring, person = FakeRing(), ScriptedPerson("short", WRONG, f" {KEY}\n")
    assert find(candidate(vendor.url), person, ring) == ["m"]
    origin = vendor.url.removesuffix("/v1")
    assert ring.kept == {("byok", f"vendor@{origin}"): KEY}
    assert vendor.keys[-1] == KEY
    shown = "".join(capsys.readouterr())
    assert fingerprint(KEY) in shown
    assert KEY not in shown
    assert WRONG not in shown


def test_no_key_is_stored_if_none_is_taken(vendor: Vendor) -> None:
    ring = FakeRing()
    with pytest.raises(ConfigError, match="Nothing was stored"):
        find(candidate(vendor.url), ScriptedPerson(WRONG, WRONG, WRONG), ring)
    assert ring.kept == {}


def test_without_a_keyring_a_person_chooses_a_store_before_typing_the_key(
    vendor: Vendor,
) -> None:
    def find_with(person: ScriptedPerson) -> list[str]:
        models = find_models(candidate(vendor.url), make_setup(person))
        return [model.id for model in models]

    neither = ScriptedPerson("3", KEY)
    with pytest.raises(KeyMissing) as caught:
        find_with(neither)
    assert len(neither.asked) == 1  # not for the key
    assert "BYOK_KEY_VENDOR" in caught.value.hint
    assert "byok keys set vendor --store key-file" in caught.value.hint
    assert not find_paths().vault_key.exists()
    assert find_with(ScriptedPerson("x", "1", KEY)) == ["m"]
    entry = f"vendor@{vendor.url.removesuffix('/v1')}"
    assert (
        make_setup(NOBODY).vault.get(entry) == KEY
    )  # as a service or a restart reads it


def test_without_a_person_a_missing_key_is_an_error(vendor: Vendor) -> None:
    with pytest.raises(ConfigError, match="No key was found for vendor") as caught:
        find(candidate(vendor.url), NOBODY)
    assert "byok keys set vendor" in caught.value.hint


def test_a_refused_key_of_the_environment_is_corrected_there(
    vendor: Vendor, capsys: pytest.CaptureFixture[str]
) -> None:
    person = ScriptedPerson(KEY)
    one = candidate(vendor.url, "VENDOR_API_KEY")
    with pytest.raises(UpstreamError):
        find(one, person, VENDOR_API_KEY=WRONG)
    assert person.asked == []
    shown = "".join(capsys.readouterr())
    assert "VENDOR_API_KEY" in shown
    assert WRONG not in shown


def test_a_refused_key_of_the_keyring_is_replaced(vendor: Vendor) -> None:
    ring = FakeRing()
    entry = ("byok", f"vendor@{vendor.url.removesuffix('/v1')}")
    ring.kept[entry] = WRONG
    one = candidate(vendor.url, KeyringStore.label)
    # A vendor on loopback is asked without the keyring at first.
    assert find(one, ScriptedPerson(KEY), ring) == ["m"]
    assert ring.kept[entry] == KEY


CHOSEN = [ChosenModel("default", "coder:30b", "the only one listed")]
OLD = b"# mine\n[server]\nport = 9000 # here\n"


def test_an_existing_file_is_extended_and_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_file(OLD)
    assert write_settings(SERVER, CHOSEN, find_paths(), ScriptedPerson(True))
    assert find_paths().config.read_bytes().startswith(OLD)
    (saved,) = (find_paths().state_dir / "settings_backups").iterdir()
    assert saved.read_bytes() == OLD
    assert str(saved) in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, OLD])
@pytest.mark.parametrize(
    ("answer", "error"), [(False, typer.Exit), (None, click.Abort)]
)
def test_nothing_is_written_after_a_no_or_ctrl_c(
    content: bytes | None, answer: bool | None, error: type[Exception]
) -> None:
    if content is not None:
        write_file(content)
    with pytest.raises(error):
        write_settings(SERVER, CHOSEN, find_paths(), ScriptedPerson(answer))
    path = find_paths().config
    assert (path.read_bytes() if path.exists() else None) == content
    assert not find_paths().state_dir.exists()


def test_nobody_gets_a_new_file_and_no_change_of_an_old_one() -> None:
    write_file(OLD)
    with pytest.raises(ConfigError) as caught:
        write_settings(SERVER, CHOSEN, find_paths(), NOBODY)
    assert "--yes" in caught.value.hint
    assert find_paths().config.read_bytes() == OLD
    find_paths().config.unlink()
    assert write_settings(SERVER, CHOSEN, find_paths(), NOBODY)


MERCURY = Candidate(
    "inception",
    UpstreamSettings(type="inception"),
    "https://api.inceptionlabs.ai/v1",
    FoundBy.KEY,
)


@pytest.mark.parametrize(
    ("candidate", "asker", "is_written"),
    [
        (SERVER, NOBODY, True),  # a model on this machine costs nothing
        (MERCURY, NOBODY, False),
        (MERCURY, Asker("byok init --yes", takes_best=True), False),
        (MERCURY, ScriptedPerson(False, True), False),
        (MERCURY, ScriptedPerson(True, True), True),
    ],
)
def test_next_edits_that_cost_tokens_are_asked_for(
    candidate: Candidate, asker: Asker, is_written: bool
) -> None:
    chosen = [*CHOSEN, ChosenModel("next_edit", "m", "made for it")]
    assert write_settings(candidate, chosen, find_paths(), asker)
    written = find_paths().config.read_text("utf-8")
    assert ("next_edit" in written) is is_written
    if isinstance(asker, ScriptedPerson):
        assert "tokens" in asker.asked[0]
    if is_written:
        assert write_settings(candidate, chosen, find_paths(), NOBODY) is False


def test_a_daemon_that_uses_another_upstream_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with daemon_thread(upstream="demo"):
        run_daemon(find_paths(), 0, "other", NOBODY, can_install=lambda paths: False)
    assert "It does not use other by itself: chosen by --upstream" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("asker", [ScriptedPerson(False), NOBODY])
def test_no_daemon_is_started_unasked(
    asker: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    started = run_daemon(
        find_paths(), 0, "demo", asker, can_install=lambda paths: False
    )
    assert started is None
    assert "byok serve" in capsys.readouterr().out


def test_a_service_is_offered_first_where_there_can_be_one() -> None:
    person = ScriptedPerson(False, False)
    assert not run_daemon(
        find_paths(), 0, "demo", person, can_install=lambda paths: True
    )
    assert ["service" in question for question in person.asked] == [True, False]


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is found in PATH")
def test_a_machine_without_a_service_manager_is_offered_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert can_install_service(find_paths()) is False


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
        assert not offer_editors(person)
        assert not editor.exists()
        assert offer_editors(person)
        assert offer_editors(person)  # it points at byok already
    assert len(person.asked) == 2
    assert daemon.url in editor.read_text()
    assert "byok connect jetbrains" in capsys.readouterr().err


def test_a_trouble_with_one_editor_does_not_end_the_command(
    editor: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    editor.write_text("{ broken")
    person = ScriptedPerson()
    with daemon_thread(upstream="demo"):
        offer_editors(person)
    assert person.asked == []
    assert str(editor) in capsys.readouterr().err


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


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_ends_the_waiting_without_harm(
    capsys: pytest.CaptureFixture[str],
) -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    wait_for_first(find_paths(), 0, 90)
    timer.join()
    assert "goes on without waiting" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ("vscode/0.600.1", "VS Code (extension 0.600.1)"),
        ("openai-js/4.1", "openai-js/4.1"),
        ("", "A client"),
    ],
)
def test_a_client_is_named_for_people(client: str, words: str) -> None:
    assert describe_client(client) == words
