"""byok doctor: each broken set-up names the fault and the cure, a healthy one none."""

import asyncio
import json
import os
import stat
import zipfile
from pathlib import Path

import pytest

from byok.core.daemon.token import read_token
from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli, Done
from tests.fakes.daemon import daemon_thread
from tests.fakes.disk import fill, mounted
from tests.fakes.doctors import rows_of, upstream_box, write_settings
from tests.fakes.probed import ProbedModel
from tests.fakes.project import make_project
from tests.fakes.upstream import FakeUpstream

KEY = "canary-0123456789-abcdefghij"


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


def test_a_wrong_key_of_the_settings_is_named(cli: Cli) -> None:
    write_settings("[server]", "prot = 1")
    done = cli("doctor", "--json")
    found, cure = "unknown key server.prot. Did you mean port?", "byok config example"
    check_told(done, "settings", "failure", found, cure)
    assert "byok capture" not in cli("doctor").err  # failures come first
    rows = rows_of(done)
    assert rows["model"]["found"] == "the settings cannot be used"
    assert rows["ripgrep"]["state"] == "ok"  # the others go on


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


def point_editor(url: str, token: str) -> Path:
    """Write the settings of an editor, as people have them."""
    user = Path(os.environ["XDG_CONFIG_HOME"]) / "Code" / "User"
    user.mkdir(parents=True, exist_ok=True)
    file = user / "settings.json"
    keys = f'"completionURL": "{url}", "apiToken": "{token}",'
    file.write_text(f'{{\n  // mine\n  "augment.advanced": {{ {keys} }},\n}}\n')
    return file


def healthy(fake: FakeUpstream) -> None:
    ProbedModel(pause=0.2).serve(fake)
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
        while rows_of(done)["streaming box"]["state"] == "not checked":
            done = await examine(cli, "--ask-models")  # the machine was too busy
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
