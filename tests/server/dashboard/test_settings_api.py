"""The settings of the page over HTTP: read, tried, saved, in force."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from byok.core.platform.paths import find_paths
from byok.core.routing import Purpose
from byok.settings.sections import ModelSettings
from tests.fakes.daemon import running, running_on_file, write_settings
from tests.fakes.dashboard import Page, signed_in, text_for
from tests.fakes.upstream import FakeUpstream

TEMPERATURE = ["chat", "temperature"]


def change(path: list[str], value: Any) -> dict[str, Any]:
    return {"path": path, "value": value}


def field(form: dict[str, Any], path: list[str]) -> dict[str, Any]:
    rows = [row for group in form["groups"] for row in group["fields"]]
    rows += [row for upstream in form["upstreams"] for row in upstream["fields"]]
    (found,) = [row for row in rows if row["path"] == path]
    assert isinstance(found, dict)
    return found


@pytest.fixture
def file(fake: FakeUpstream) -> Path:
    """The settings file of the daemon."""
    return write_settings(text_for(fake))


@pytest.fixture
async def page(file: Path) -> AsyncIterator[Page]:
    """A session of a daemon that has a settings file."""
    async with running_on_file() as editor:
        yield await signed_in(editor)


async def save(page: Page, *changes: dict[str, Any]) -> Any:
    form = await page.call("settings")
    body = {"revision": form["revision"], "changes": list(changes)}
    return await page.call("settings-save", body)


async def test_a_vendor_tells_what_gives_its_key_already() -> None:
    environ = {"OPENAI_API_KEY": "sk-one", "BYOK_KEY_GROQ": "sk-two"}
    async with running(upstream="demo", environ=environ) as editor:
        presets = (await (await signed_in(editor)).call("settings"))["presets"]
    found = {row["name"]: (row["variable"], row["key_from"]) for row in presets}
    assert found["openai"] == ("OPENAI_API_KEY", "OPENAI_API_KEY")
    assert found["groq"] == ("GROQ_API_KEY", "BYOK_KEY_GROQ")
    assert found["anthropic"] == ("ANTHROPIC_API_KEY", "")
    assert found["ollama"] == ("", "")


async def test_a_form_says_what_the_file_says_and_what_counts(
    fake: FakeUpstream,
) -> None:
    write_settings(text_for(fake))
    async with running_on_file(options={"routing.default": "--model"}) as editor:
        page = await signed_in(editor)
        form = await page.call("settings")
        raw = (await page.raw("settings")).raw
    found = field(form, TEMPERATURE)
    assert (found["given"], found["value"], found["default"]) == (0.5, 0.5, None)
    assert (found["kind"], found["least"], found["most"]) == ("number", 0, 2)
    assert (
        found["description"]
        == "Sampling temperature, from 0 to 2. Not sent unless set."
    )
    assert "given" not in field(form, ["chat", "max_tokens"])
    assert field(form, ["routing", "default"])["fixed"] == "--model"
    assert [row["given"] for row in form["file_only"] if row["given"]] == [
        ["upstreams.fake.headers"]
    ]
    assert b"secret-of-the-team" not in raw
    assert (form["blocked"], form["error"], form["restart"]) == ("", "", [])
    assert form["jobs"].keys() == {*Purpose} - {Purpose.CHAT}
    for job, names in form["jobs"].items():
        for name in names:
            assert ModelSettings(**{name: "m"}).for_purpose(Purpose(job)) == "m"


@pytest.mark.usefixtures("file")
async def test_a_variable_of_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BYOK_CHAT__TEMPERATURE", "1.5")
    async with running_on_file() as editor:
        form = await (await signed_in(editor)).call("settings")
    found = field(form, TEMPERATURE)
    assert (found["fixed"], found["given"], found["value"]) == (
        "BYOK_CHAT__TEMPERATURE",
        0.5,
        1.5,
    )


async def test_a_saved_setting_is_in_force_for_the_next_chat(
    fake: FakeUpstream, file: Path, page: Page
) -> None:
    answer = await save(page, change(TEMPERATURE, 0.25))
    await page.editor.chat()
    assert fake.requests[-1]["temperature"] == 0.25
    assert field(answer["form"], TEMPERATURE)["value"] == 0.25
    due = text_for(fake).replace("0.5 # not", "0.25 # not")
    assert file.read_text() == due
    backups = [*(find_paths().state_dir / "settings_backups").iterdir()]
    assert [path.read_text() for path in backups] == [text_for(fake)]


async def test_a_change_by_an_editor_is_kept_and_said(
    fake: FakeUpstream, file: Path, page: Page
) -> None:
    revision = (await page.call("settings"))["revision"]
    body = {"revision": revision, "changes": [change(TEMPERATURE, 1)]}
    file.write_text(text_for(fake) + "# by an page.editor\n")
    refused = await page.refused("settings-save", body)
    assert refused == (409, "settings_changed")
    assert file.read_text().endswith("# by an page.editor\n")
    body["revision"] = (await page.call("settings"))["revision"]
    assert (await page.call("settings-save", body))["errors"] == []
    assert "temperature = 1 # not" in file.read_text()
    assert file.read_text().endswith("# by an page.editor\n")


async def test_of_two_pages_that_save_at_once_one_is_told(page: Page) -> None:
    revision = (await page.call("settings"))["revision"]
    answers = await asyncio.gather(
        *(
            page.raw(
                "settings-save",
                {"revision": revision, "changes": [change(TEMPERATURE, value)]},
            )
            for value in (0.1, 0.2, 0.3)
        )
    )
    assert sorted(answer.status for answer in answers) == [200, 409, 409]


FAULTS: list[tuple[list[str], Any, str]] = [
    (TEMPERATURE, 3, "less than or equal to 2"),
    (TEMPERATURE, "warm", "must be a number"),
    (["chat", "effort"], "much", "must be one of"),
    (["server", "port"], 80, "1024"),
    (["upstreams", "fake", "base_url"], "http://example.com", "plain http"),
    (["routing", "default"], "byok:nobody:x", "not configured"),
    (["routing", "models", "commit"], "byok:nobody:x", "not configured"),
    (["routing", "fallback", "chat"], ["x y"], "must be models"),
    (["loops", "failing_end"], 2, "must be more than"),
    (["upstreams", "New One"], {}, "must be a-z"),
    (["upstreams", "new"], {}, "base_url is missing"),
    (["chat", "system_prompt"], "a\0b", "control characters"),
]


async def test_a_fault_is_told_at_its_setting(
    fake: FakeUpstream, file: Path, page: Page
) -> None:
    good = change(["chat", "max_tokens"], 99)
    for path, value, told in FAULTS:
        body = {"changes": [good, change(path, value)]}
        checked = (await page.call("settings-check", body))["errors"]
        assert checked == (await save(page, good, change(path, value)))["errors"]
        assert path in [row["path"][: len(path)] for row in checked], path
        assert told in checked[0]["message"]
    assert file.read_text() == text_for(fake)


REFUSED: list[Any] = [
    ["upstreams", "fake", "api_key_cmd"],
    ["upstreams", "fake", "headers"],
    ["upstreams", "fake", "extra_body"],
    ["upstreams", "fake", "query"],
    ["upstreams", "fake", "proxy"],
    ["upstreams", "fake", "allow_insecure_http"],
    ["upstreams", "fake", "facts", "x"],
    ["otel", "headers"],
    ["network", "proxy"],
    ["context", "allow_secret"],
    ["nothing", "here"],
    ["chat"],
    ["chat", 1],
    "chat.temperature",
    None,
]
MALFORMED: list[Any] = [
    *(None, {}, "x", [[]], [{"path": []}], [{}] * 201, [{"path": ["a"] * 9}])
]


async def test_what_is_for_the_file_alone_or_malformed_is_refused(
    fake: FakeUpstream, file: Path, page: Page
) -> None:
    bodies = [[{"path": path, "value": "x"}] for path in REFUSED]
    for changes in [*bodies, *MALFORMED]:
        for name in ("settings-check", "settings-save"):
            body = {"revision": "", "changes": changes}
            assert await page.refused(name, body) == (422, "bad_field"), changes
    assert file.read_text() == text_for(fake)


async def test_a_preview_shows_the_lines_and_no_neighbour(page: Page) -> None:
    body = {"changes": [change(TEMPERATURE, 1.5), change(["server", "port"], 9000)]}
    told = await page.call("settings-check", body)
    gone = {"changes": [{"path": ["upstreams", "fake"], "remove": True}]}
    removed = await page.raw("settings-check", gone)
    assert told["restart"] == ["server.port"]
    assert {"sign": "-", "line": "temperature = 0.5 # not too wild"} in told["lines"]
    assert {"sign": "+", "line": "temperature = 1.5 # not too wild"} in told["lines"]
    assert {"sign": "+", "line": "port = 9000"} in told["lines"]
    assert b"secret-of-the-team" not in removed.raw
    assert {"sign": "-", "line": "…"} in removed.json["lines"]


async def test_a_file_is_made_where_there_is_none() -> None:
    async with running_on_file() as editor:
        page = await signed_in(editor)
        form = await page.call("settings")
        assert (form["revision"], form["exists"], form["blocked"]) == ("", False, "")
        await save(page, change(["upstreams", "demo"], {}), change(TEMPERATURE, 1))
    file = find_paths().config
    assert file.read_text() == (
        "# Made by byok's dashboard. Every setting: byok config example\n"
        "\n[upstreams.demo]\n\n[chat]\ntemperature = 1\n"
    )
    if os.name == "posix":
        assert file.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_lost_is_not_made_anew(file: Path, page: Page) -> None:
    """Its proxy and headers would be dropped without a word."""
    file.unlink()
    body = {"revision": "", "changes": [change(TEMPERATURE, 1)]}
    assert await page.refused("settings-save", body) == (400, "config")
    assert not file.exists()


def large(fake: FakeUpstream) -> bytes:
    return text_for(fake).encode() + b"#" * 2**16


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda fake: b"a = [", "not valid TOML"),
        (lambda fake: b"[chat]\nx = \xff\n", "UTF-8"),
        (large, "larger than 65,536"),
    ],
)
async def test_a_file_that_cannot_be_used_is_left_alone(
    fake: FakeUpstream, make: Any, told: str, file: Path, page: Page
) -> None:
    file.write_bytes(make(fake))
    form = await page.call("settings")
    assert told in form["blocked"]
    assert field(form, TEMPERATURE)["value"] == 0.5
    body = {"revision": form["revision"], "changes": [change(TEMPERATURE, 1)]}
    answer = await page.raw("settings-save", body)
    assert answer.status == 400 or answer.json["errors"]
    assert file.read_bytes() == make(fake)


async def test_a_wrong_setting_in_the_file_can_be_mended(
    fake: FakeUpstream, file: Path, page: Page
) -> None:
    file.write_text(text_for(fake).replace("0.5", '"<img src=x>"'))
    form = await page.call("settings")
    assert form["blocked"] == ""
    assert form["faults"][0]["path"] == TEMPERATURE
    assert field(form, TEMPERATURE)["given"] == "<img src=x>"
    other = await save(page, change(["chat", "max_tokens"], 9))
    assert other["errors"][0]["path"] == TEMPERATURE
    assert (await save(page, change(TEMPERATURE, 1)))["errors"] == []
    assert "temperature = 1 # not" in file.read_text()


@pytest.mark.skipif(os.name != "posix", reason="modes and links")
@pytest.mark.parametrize("kind", ["link", "read-only", "folder"])
async def test_a_file_that_is_not_to_be_replaced_stays(
    fake: FakeUpstream, tmp_path: Path, kind: str, file: Path, page: Page
) -> None:
    revision = (await page.call("settings"))["revision"]
    if kind == "link":
        file.rename(file.with_name("other.toml"))
        file.symlink_to(file.with_name("other.toml"))
    elif kind == "read-only":
        file.chmod(0o400)
    else:
        file.unlink()
        file.mkdir()
    assert (await page.call("settings"))["blocked"]
    body = {"revision": revision, "changes": [change(TEMPERATURE, 1)]}
    assert await page.refused("settings-save", body) == (400, "config")
    assert file.is_dir() or file.read_text() == text_for(fake)


async def test_an_unchanged_setting_writes_nothing(file: Path, page: Page) -> None:
    before = file.stat()
    assert (await save(page, change(TEMPERATURE, 0.5)))["errors"] == []
    assert file.stat().st_ino == before.st_ino


async def test_a_file_of_an_option_is_changed_where_it_is(
    fake: FakeUpstream, tmp_path: Path
) -> None:
    file = write_settings(text_for(fake), tmp_path / "mine" / "byok.toml")
    async with running_on_file(file) as editor:
        page = await signed_in(editor)
        form = await page.call("settings")
        assert form["file"] == str(file)
        assert (await save(page, change(TEMPERATURE, 1)))["errors"] == []
    assert "temperature = 1 # not" in file.read_text()
    assert not find_paths().config.exists()


async def test_a_full_disk_leaves_the_file_as_it_was(
    fake: FakeUpstream, monkeypatch: pytest.MonkeyPatch, file: Path, page: Page
) -> None:
    form = await page.call("settings")
    body = {"revision": form["revision"], "changes": [change(TEMPERATURE, 1)]}

    def fail(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        answer = await page.raw("settings-save", body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "config")
    assert "No space left" in answer.json["message"]
    assert file.read_text() == text_for(fake)


async def test_a_second_name_of_the_file_is_refused(file: Path, page: Page) -> None:
    """Replacing it would leave the old text under the other name."""
    file.with_name("other.toml").hardlink_to(file)
    assert "hard link" in (await page.call("settings"))["blocked"]


async def test_a_session_is_needed(page: Page) -> None:
    """The clients' token does not open it."""
    names = ("settings", "settings-check", "settings-save", "restart")
    for name in (*names, "key-set", "key-remove", "capture", "capture-stop"):
        answer = await page.editor.post(f"/ui/api/{name}", {})
        assert answer.status == 401, name
    assert not page.editor.daemon.control.ending.is_set()


@pytest.mark.parametrize("also", [(), (change(TEMPERATURE, 0.25),)], ids=["alone", "+"])
async def test_what_the_file_sends_to_one_address_goes_to_no_other(
    fake: FakeUpstream, also: tuple[dict[str, Any], ...]
) -> None:
    """R7: headers and a key by a command are bound to no address."""
    file = write_settings(text_for(fake))
    async with FakeUpstream() as other, running_on_file() as editor:
        page = await signed_in(editor)
        path = ["upstreams", "fake", "base_url"]
        changes = [change(path, other.url), *also]
        told = await page.call("settings-check", {"changes": changes})
        assert (told["errors"][0]["path"], told["lines"]) == (path, [])
        assert "headers" in told["errors"][0]["message"]
        assert (await save(page, *changes))["errors"] == told["errors"]
        await editor.chat()
        assert (len(fake.requests), len(other.requests)) == (1, 0)
    assert file.read_text() == text_for(fake)
