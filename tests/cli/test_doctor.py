"""byok doctor: each broken set-up names the fault and the cure, a healthy one none."""

import asyncio
import json
import os
import shutil
import socket
import stat
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from byok.cli.checks import surroundings
from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from byok.settings.keys import ladder
from tests.fakes.certificates import certificate, resolve_here, secure
from tests.fakes.commands import Cli, Done
from tests.fakes.daemon_thread import daemon_thread
from tests.fakes.disk import fill, mounted
from tests.fakes.doctors import rows_of, upstream_box, write_settings
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.probed import ProbedModel
from tests.fakes.project import make_project
from tests.fakes.rows import daemon_rows
from tests.fakes.upstream import FakeUpstream, dead_url

CONNECT = "byok connect vscode --write"
KEY = "canary-0123456789-abcdefghij"
STATUS = {"upstream": "demo", "base_url": "", "model": "", "settings": {}}


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No editor of this machine is looked at."""
    monkeypatch.setenv("HOME", str(tmp_path))


async def examine(cli: Cli, *arguments: str) -> Done:
    return await asyncio.to_thread(cli, "doctor", "--json", *arguments)


def check_told(done: Done, row: str, state: str, found: str, cure: str) -> None:
    """Check what one row says, and that the exit code agrees with all rows."""
    rows = rows_of(done)
    assert row in rows, done.out
    told = rows[row]
    assert told["state"] == state, told
    assert found in told["found"], told
    assert cure in told["cure"], told
    failures = [row for row in rows.values() if row["state"] == "failure"]
    assert done.code == (1 if failures else 0)
    assert not any("itself broke" in row["found"] for row in rows.values()), done.out


@pytest.fixture
def free_port() -> Iterator[int]:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


def test_a_wrong_key_of_the_settings_is_named(cli: Cli) -> None:
    write_settings("[server]", "prot = 1")
    done = cli("doctor", "--json")
    found, cure = "unknown key server.prot. Did you mean port?", "byok config example"
    check_told(done, "settings", "failure", found, cure)
    assert "byok capture" not in cli("doctor").err  # failures come first
    rows = rows_of(done)
    assert rows["model"]["found"] == "the settings cannot be used"
    assert rows["ripgrep"]["state"] == "ok"  # the others go on


def test_a_port_that_a_stranger_has_is_named(cli: Cli) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = stranger.getsockname()[1]
        write_settings("[server]", f"port = {port}")
        done = cli("doctor", "--json")
    found = f"Port {port} on 127.0.0.1 is taken by another program"
    check_told(done, "port", "failure", found, "byok serve --port N")


def test_a_token_that_others_may_read_is_named(cli: Cli) -> None:
    find_paths().state_dir.mkdir(parents=True)
    token = read_token(find_paths().token)
    find_paths().token.chmod(0o644)
    done = cli("doctor", "--json")
    check_told(done, "token", "failure", "can be read", "chmod 600")
    assert token not in done.out


async def test_a_missing_key_is_named(cli: Cli, fake: FakeUpstream) -> None:
    write_settings(*upstream_box(fake.url, 'api_key_env = "KEY_OF_BOX"'))
    done = await examine(cli)
    check_told(done, "key box", "failure", "KEY_OF_BOX", "Set the variable KEY_OF_BOX")
    check_told(
        done, "model list box", "failure", "No key was found", "Set the variable"
    )
    assert fake.list_headers == []


async def test_a_key_source_that_hangs_is_named(
    cli: Cli, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "_COMMAND_SECONDS", 0.3)
    sleep = shutil.which("sleep")
    write_settings(*upstream_box(fake.url, f'api_key_cmd = ["{sleep}", "60"]'))
    done = await examine(cli)
    check_told(done, "key box", "failure", "did not answer within 0.3 s", "by hand")


def test_an_upstream_that_is_down_is_named(cli: Cli) -> None:
    write_settings(*upstream_box(dead_url()))
    done = cli("doctor", "--json")
    found, cure = "nothing answers at http://127.0.0.1:", "Is it running"
    check_told(done, "model list box", "failure", found, cure)
    assert rows_of(done)["context window box"]["state"] == "not checked"


def test_a_name_without_an_address_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_here(monkeypatch)
    write_settings(*upstream_box("https://models.invalid/v1"))
    done = cli("doctor", "--json")
    found = "the name models.invalid has no address here"
    check_told(done, "model list box", "failure", found, "base_url")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the refused handshake
@pytest.mark.parametrize(
    ("days", "cure"), [(9, "set ca_file to its certificate"), (-1, "clock")]
)
async def test_a_certificate_that_is_not_trusted_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, cure: str
) -> None:
    resolve_here(monkeypatch)
    file = certificate(tmp_path, "model.test", days=days)
    trusts = [f'ca_file = "{file}"'] if days < 0 else []
    async with secure(file, "model.test") as (_, url):
        write_settings(*upstream_box(url, *trusts))
        done = await examine(cli)
    check_told(done, "model list box", "failure", "is not trusted", cure)


async def test_a_proxy_that_catches_loopback_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "localhost,.example")
    done = await examine(cli)
    cure = "export NO_PROXY=localhost,.example,127.0.0.1,::1"
    found = "HTTP_PROXY is set and NO_PROXY does not name 127.0.0.1"
    check_told(done, "proxy variables", "warning", found, cure)
    monkeypatch.setenv("NO_PROXY", cure.partition("=")[2])
    assert rows_of(await examine(cli))["proxy variables"]["state"] == "ok"


async def test_a_default_model_that_does_not_exist_is_named(
    cli: Cli, fake: FakeUpstream
) -> None:
    wanted = ["[routing]", 'default = "byok:box:fake-modle"']
    write_settings(*wanted, *upstream_box(fake.url))
    done = await examine(cli)
    found = "box has no model fake-modle; did you mean fake-model?"
    check_told(done, "model default", "failure", found, "correct routing.default")


async def test_a_window_that_the_server_cut_is_named(cli: Cli) -> None:
    async with OllamaServer() as server:
        server.loaded["coder:latest"] = 4096
        write_settings(
            "[upstreams.ollama]",
            f'base_url = "{server.url}/v1"',
            'dialect = "openai_chat"',
            'model = "coder"',
        )
        done = await examine(cli)
    found = "its server cuts that of coder to 4,096 tokens, without a word"
    cure = "OLLAMA_CONTEXT_LENGTH"
    check_told(done, "context window ollama", "failure", found, cure)


async def test_a_window_that_the_settings_cut_is_named(cli: Cli) -> None:
    async with OllamaServer() as server:
        write_settings(
            *("[upstreams.ollama]", f'base_url = "{server.url}"', 'model = "coder"'),
            "num_ctx = 20000",
        )
        done = await examine(cli)
    found = "num_ctx cuts that of coder to 20,000 of 131,072"
    check_told(done, "context window ollama", "warning", found, "Raise num_ctx")


def test_a_missing_ripgrep_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = cli("doctor", "--json")
    check_told(done, "ripgrep", "warning", "not in PATH", "Install ripgrep")


@pytest.mark.parametrize("damage", ["no database", "a page"])
def test_a_damaged_index_is_named_and_left_as_it_is(cli: Cli, damage: str) -> None:
    project = make_project(find_paths().data_dir.parent / "bakery")
    cli("index", "add", project)
    file = find_paths().database
    raw = bytearray(file.read_bytes())
    start = 0 if damage == "no database" else len(raw) // 4096 // 2 * 4096
    raw[start : start + 4096] = b"\xa5" * 4096
    file.write_bytes(raw)
    done = cli("doctor", "--json")
    check_told(done, "index", "failure", "data.db is damaged", "data.db-wal away")
    assert file.read_bytes() == raw


def test_a_full_disk_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(tmp_path / "disk", "512k") as disk:
        home = disk / "home"
        home.mkdir(0o700)
        monkeypatch.setenv("BYOK_HOME", str(home))
        fill(disk / "filler")
        done = cli("doctor", "--json")
        assert [*home.iterdir()] == []  # nothing is left
    check_told(done, "disk", "failure", "the disk is full", "Free some disk space")


async def test_a_daemon_of_an_older_version_is_named(cli: Cli) -> None:
    await asyncio.to_thread(cli, "token")
    async with daemon_rows({"/byok/daemon": {**STATUS, "version": "0.1.0"}}):
        done = await examine(cli)
    found = "the daemon is byok 0.1.0, this command is byok"
    check_told(done, "daemon version", "warning", found, "byok restart")


async def test_a_daemon_that_does_not_know_the_request_is_named(cli: Cli) -> None:
    await asyncio.to_thread(cli, "token")
    async with daemon_rows({"/byok/daemon": (404, {"error": "Not Found"})}):
        done = await examine(cli)
    check_told(done, "daemon version", "failure", "another version", "byok stop")


@pytest.mark.case("B108")
async def test_a_process_that_only_holds_the_lock_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surroundings, "_PATIENCE", 0.1)
    await asyncio.to_thread(cli, "token")
    async with daemon_rows() as rows:
        rows.honest = False
        done = await examine(cli)
    check_told(done, "daemon", "failure", "does not prove itself", "daemon.json")
    assert rows.tokens == []


def point_editor(url: str, token: str) -> Path:
    """Write the settings of an editor, as people have them."""
    user = Path(os.environ["XDG_CONFIG_HOME"]) / "Code" / "User"
    user.mkdir(parents=True, exist_ok=True)
    file = user / "settings.json"
    keys = f'"completionURL": "{url}", "apiToken": "{token}",'
    file.write_text(f'{{\n  // mine\n  "augment.advanced": {{ {keys} }},\n}}\n')
    return file


@pytest.mark.skipif(sys.platform != "linux", reason="places of Linux")
def test_an_editor_that_points_elsewhere_is_named(cli: Cli) -> None:
    cli("token")
    file = point_editor("https://t.api.example", KEY)
    done = cli("doctor", "--json")
    found = "it points at https://t.api.example, not at byok"
    check_told(done, f"client vscode {file}", "warning", found, CONNECT)
    assert KEY not in done.out
    point_editor("http://127.0.0.1:9", KEY)
    done = cli("doctor", "--json")
    found = "it points at port 9, and byok is at 8317"
    check_told(done, f"client vscode {file}", "failure", found, CONNECT)


def healthy(fake: FakeUpstream) -> None:
    ProbedModel().serve(fake)
    write_settings(
        *("[routing]", 'default = "byok:box:fake-model"'),
        *upstream_box(fake.url, 'api_key_env = "KEY_OF_BOX"'),
    )


async def test_a_healthy_set_up_has_nothing_to_cure(
    cli: Cli, fake: FakeUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_BOX", KEY)
    healthy(fake)
    project = str(make_project(tmp_path / "bakery"))
    Path(project, "loaf.txt").write_bytes(b"\0\1\2")
    environ = {"KEY_OF_BOX": KEY}
    with daemon_thread(upstream="", environ=environ) as daemon:
        await asyncio.to_thread(cli, "index", "add", project)
        point_editor(daemon.url, find_paths().token.read_text().strip())
        done = await examine(cli, "--ask-models")
        rows = rows_of(done)
        plain = await asyncio.to_thread(cli, "doctor")
    bad = {n: r for n, r in rows.items() if r["state"] != "ok" or r["cure"]}
    assert (done.code, bad) == (0, {})
    assert rows["key box"]["found"] == "from KEY_OF_BOX"
    assert f"answers at port {daemon.port}" in rows["port"]["found"]
    assert rows["chat box"]["found"].startswith("fake-model answered in")
    assert "pieces" in rows["streaming box"]["found"]
    assert "skipped: 1 binary" in rows[f"workspace {project}"]["found"]
    assert KEY not in done.out
    lines = plain.out.splitlines()
    assert plain.code == 0
    assert "ok           daemon version: byok" in plain.out
    assert lines[-1].endswith("0 warnings, 0 failures, 3 not checked")
    assert "\x1b" not in plain.out
    assert "cure: byok doctor --ask-models" in plain.out
    assert "byok capture on, then byok report ID" in plain.err


async def test_a_key_that_the_daemon_lacks_is_named(
    cli: Cli, fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_BOX", KEY)
    healthy(fake)
    with daemon_thread(upstream="", environ={}):
        done = await examine(cli)
    check_told(
        done, "key box", "failure", "running daemon does not have", "byok restart"
    )


async def test_nobody_is_asked_who_is_not_named(cli: Cli, fake: FakeUpstream) -> None:
    healthy(fake)
    await examine(cli)
    assert fake.requests == []  # no chat without --ask-models
    assert len(fake.list_headers) <= 1


@pytest.mark.case("B117")
def test_names_of_strangers_are_shown_as_escapes(cli: Cli) -> None:
    write_settings("[context]", 'workspaces = ["/no/\\u001b[2Jgone\\u202e"]')
    done = cli("doctor")
    assert "\\x1b[2Jgone\\u202e" in done.out
    assert "\x1b" not in done.out + cli("doctor", "--json").out


async def test_a_bundle_is_private_and_has_no_secret(
    cli: Cli, fake: FakeUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(os.environ["BYOK_HOME"])
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("KEY_OF_BOX", KEY)
    monkeypatch.setenv("SOME_OTHER_TOKEN", "other-canary-0123456789")
    healthy(fake)
    log = find_paths().log
    log.parent.mkdir(parents=True)
    token = read_token(find_paths().token)
    quoted = "INFO byok.server.model_answer: tool call of save repaired (x): my code"
    log.write_text(f"key {KEY}\n{token} other-canary-0123456789\n{home}/x\n{quoted}\n")
    file = tmp_path / "bundle.zip"
    done = await asyncio.to_thread(cli, "doctor", "--bundle", file)
    assert f"{file} is written" in done.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert set(texts) == {"doctor.json", "settings.json", "versions.json", "log.txt"}
    whole = "".join(texts.values())
    for secret in (KEY, token, "other-canary", str(home.parent), "my code"):
        assert secret not in whole
    assert "~/home/x" in texts["log.txt"]
    assert json.loads(texts["doctor.json"])["schema"] == 1
    assert (
        json.loads(texts["settings.json"])["upstreams"]["box"]["base_url"] == fake.url
    )
    again = await asyncio.to_thread(cli, "doctor", "--bundle", file)
    assert again.code == 78
    assert "exists already" in again.err


@pytest.mark.usefixtures("unused_port")
async def test_a_bundle_that_cannot_be_written_costs_no_result(
    cli: Cli, fake: FakeUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_BOX", KEY)
    healthy(fake)
    file = tmp_path / "missing" / "b.zip"
    done = await asyncio.to_thread(cli, "doctor", "--json", "--bundle", file)
    assert json.loads(done.out)["counts"]["failure"] == 0
    assert (done.code, f"{file} cannot be written: No such" in done.err) == (1, True)


def test_a_home_with_files_of_others_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "thesis.txt").write_text("mine")
    monkeypatch.setenv("BYOK_HOME", str(tmp_path))
    done = cli("doctor", "--json", "--bundle", tmp_path / "b.zip")
    check_told(done, "home", "failure", "thesis.txt", "new or empty folder")
    assert not (tmp_path / "b.zip").exists()


def test_nothing_is_written_in_an_empty_home(cli: Cli, tmp_path: Path) -> None:
    home = Path(os.environ["BYOK_HOME"])
    done = cli("doctor")
    assert not home.exists()
    assert "warning      daemon: it is not running" in done.out
    assert "cure: byok serve" in done.out
