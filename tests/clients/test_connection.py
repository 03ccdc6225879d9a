"""Settings of all clients: what they have to say, written and taken out again."""

import json
import os
import subprocess
import threading
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import NamedTuple

import pytest

from byok.clients.connection import (
    DaemonAddress,
    FileChange,
    FileConnector,
    settings_for,
)
from byok.clients.document import TEXT_EDITORS
from byok.clients.locations import ClientKind
from byok.clients.settings_file import Backup, BackupStore
from byok.clients.settings_text import decode_text, encode_text
from byok.core.errors import ConfigError
from tests.fakes.settings_files import (
    AUGMENT,
    BOTH,
    OBJECT,
    OWN_PROVIDER,
    PLAIN,
    SAMPLES,
    FileSample,
)

TOKEN = "token-of-byok-0123456789"


class SlowStore(BackupStore):
    """Keeps backups; before that, another process of byok begins to change a file."""

    def __init__(self, folder: Path, other: threading.Thread) -> None:
        super().__init__(folder)
        self._other = other

    def save(self, backup: Backup, current: bytes | None) -> None:
        self._other.start()
        self._other.join(1)  # long enough for it to be done, if nothing stops it
        super().save(backup, current)


each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)


class Desk(NamedTuple):
    """A home with a settings file in it."""

    file: Path
    connector: FileConnector
    address: DaemonAddress

    def lay(self, raw: bytes | None) -> None:
        if raw is not None:
            self.file.write_bytes(raw)

    @property
    def raw(self) -> bytes | None:
        return self.file.read_bytes() if self.file.exists() else None

    def connect(
        self, client: ClientKind, url: str = "", *, mcp: bool = False
    ) -> FileChange:
        address = self.address._replace(url=url or self.address.url)
        change = self.connector.plan_connect(client, self.file, address, mcp=mcp)
        self.connector.carry_out(change)
        return change

    def disconnect(self, client: ClientKind) -> FileChange:
        change = self.connector.plan_disconnect(client, self.file)
        self.connector.carry_out(change)
        return change

    def edit(self, client: ClientKind) -> None:
        """Add a setting, as the user does."""
        self.file.write_bytes(with_own(client, self.file.read_bytes()))

    def backups(self) -> list[Path]:
        folder = self.file.parent.parent / "backups"
        return [path for path in folder.rglob("*") if path.is_file()]


def with_own(client: ClientKind, raw: bytes) -> bytes:
    decoded = decode_text(raw)
    new = TEXT_EDITORS[client.text_format].put(decoded.text, ("own.setting",), "mine")
    return encode_text(decoded._replace(text=new))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    home = tmp_path / "me"
    home.mkdir()
    connector = FileConnector(BackupStore(tmp_path / "backups"), home)
    address = DaemonAddress(
        "http://127.0.0.1:8317", TOKEN, tmp_path / "token", "byok:box:qwen3:30b"
    )
    return Desk(home / "settings", connector, address)


@pytest.mark.case("F61")
@each_sample
def test_connection_keeps_everything_else_and_back_is_byte_for_byte(
    desk: Desk, sample: FileSample
) -> None:
    desk.lay(sample.raw)
    desk.connect(sample.client)
    editor = TEXT_EDITORS[sample.client.text_format]
    old, new = decode_text(sample.raw or b""), decode_text(desk.raw or b"")
    wanted = settings_for(sample.client, desk.address, old.text)
    assert [editor.read(new.text, path) for path, _ in wanted] == [v for _, v in wanted]
    assert (new.has_bom, new.has_crlf) == (old.has_bom, old.has_crlf)
    lines = {line.strip() for line in new.text.split("\n")}
    comments = [
        line.strip()
        for line in old.text.split("\n")
        if line.strip().startswith(("//", "#"))
    ]
    assert [line for line in comments if line not in lines] == []
    before = desk.file.stat()
    assert not desk.connect(sample.client).is_needed
    now = desk.file.stat()  # clients reload themselves whenever their settings change
    assert (now.st_ino, now.st_mtime) == (before.st_ino, before.st_mtime)
    change = desk.disconnect(sample.client)
    assert desk.raw == sample.raw
    assert (change.is_exact, change.changed) == (True, ())
    assert desk.backups() == []


@pytest.mark.case("F61")
@each_sample
def test_connection_edited_since_loses_only_what_is_of_byok(
    desk: Desk, sample: FileSample
) -> None:
    desk.lay(sample.raw)
    desk.connect(sample.client)
    desk.edit(sample.client)
    change = desk.disconnect(sample.client)
    assert (change.is_exact, change.changed) == (False, ())
    expected, now = with_own(sample.client, sample.raw or b""), desk.raw or b""
    layouts = ("opencode with a BOM", "Codex with prose")  # a gap that byok made stays
    if sample.name in layouts:
        expected, now = b"".join(expected.split()), b"".join(now.split())
    assert now == expected
    assert desk.backups() == []


@pytest.mark.case("F61")
@each_sample
def test_connection_again_after_an_edit_and_back_keeps_the_edit(
    desk: Desk, sample: FileSample
) -> None:
    desk.lay(sample.raw)
    desk.connect(sample.client)
    desk.edit(sample.client)
    desk.connect(sample.client, url="http://127.0.0.1:9000")
    desk.disconnect(sample.client)
    editor = TEXT_EDITORS[sample.client.text_format]
    text = decode_text(desk.raw or b"").text
    assert editor.read(text, ("own.setting",)) == "mine"
    assert b"9000" not in (desk.raw or b"")
    assert TOKEN.encode() not in (desk.raw or b"")


def test_connection_that_somebody_changed_keeps_their_value(desk: Desk) -> None:
    desk.lay(AUGMENT.encode())
    desk.connect(ClientKind.VSCODE)
    raw = desk.file.read_bytes().replace(b"http://127.0.0.1:8317", b"http://theirs/")
    desk.file.write_bytes(raw)
    change = desk.disconnect(ClientKind.VSCODE)
    assert change.changed == (("augment.advanced.completionURL",),)
    text = desk.file.read_text()
    assert '"http://theirs/"' in text
    assert "0123-of-the-official-service" in text
    assert TOKEN not in text


def test_connection_whose_file_is_gone_is_forgotten(desk: Desk) -> None:
    desk.lay(PLAIN.encode())
    desk.connect(ClientKind.VSCODE)
    desk.file.unlink()
    assert not desk.disconnect(ClientKind.VSCODE).is_needed
    assert desk.raw is None
    [kept] = desk.backups()
    assert kept.read_bytes() == PLAIN.encode()
    assert desk.connector.backups.kept_copies(ClientKind.VSCODE, desk.file) == [kept]
    assert desk.connector.backups.list_paths(ClientKind.VSCODE) == []


def test_connection_is_undone_only_where_byok_made_it(desk: Desk) -> None:
    desk.lay(PLAIN.encode())
    with pytest.raises(ConfigError, match="byok has not changed") as caught:
        desk.connector.plan_disconnect(ClientKind.VSCODE, desk.file)
    assert "byok connect vscode" in caught.value.hint
    desk.connect(ClientKind.VSCODE)
    with pytest.raises(ConfigError, match="byok has not changed"):
        desk.connector.plan_disconnect(ClientKind.CURSOR, desk.file)


@pytest.mark.case("B140")
@pytest.mark.parametrize(
    ("client", "raw", "what"),
    [
        (ClientKind.VSCODE, b'{"a": 1', "line 1: a comma or"),
        (ClientKind.VSCODE, b"[]", "the whole file is no object"),
        (ClientKind.VSCODE, b'{"a": "\xff"}', "not UTF-8"),
        (ClientKind.CODEX, b"model = \n", "line 1"),
        (ClientKind.AIDER, b"a: 1\n" * 50_001, "larger than 250,000 bytes"),
    ],
)
def test_connection_that_cannot_be_made_changes_nothing(
    desk: Desk, client: ClientKind, raw: bytes, what: str
) -> None:
    desk.lay(raw)
    with pytest.raises(ConfigError, match=what):
        desk.connect(client)
    assert (desk.raw, desk.backups()) == (raw, [])


@pytest.mark.case("B141")
def test_connection_that_another_program_overtakes_leaves_no_trace(desk: Desk) -> None:
    desk.lay(PLAIN.encode())
    plan = desk.connector.plan_connect(ClientKind.VSCODE, desk.file, desk.address)
    desk.lay(b"{}")
    with pytest.raises(ConfigError, match="changed by another program"):
        desk.connector.carry_out(plan)
    assert (desk.raw, desk.backups()) == (b"{}", [])


def test_connection_that_is_overtaken_later_keeps_its_backup(desk: Desk) -> None:
    desk.lay(PLAIN.encode())
    desk.connect(ClientKind.VSCODE)
    address = desk.address._replace(url="http://127.0.0.1:9000")
    plan = desk.connector.plan_connect(ClientKind.VSCODE, desk.file, address)
    desk.edit(ClientKind.VSCODE)
    with pytest.raises(ConfigError, match="changed by another program"):
        desk.connector.carry_out(plan)
    desk.disconnect(ClientKind.VSCODE)
    assert desk.raw == with_own(ClientKind.VSCODE, PLAIN.encode())


def test_connection_saves_the_backup_before_it_writes(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the power failed between the two: the file is as it was, and stays so."""

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    desk.lay(PLAIN.encode())
    monkeypatch.setattr("byok.clients.connection.replace_settings_file", fail)
    with pytest.raises(KeyboardInterrupt):
        desk.connect(ClientKind.VSCODE)
    [before] = [path for path in desk.backups() if path.suffix == ".before"]
    assert before.read_bytes() == PLAIN.encode()
    assert not desk.disconnect(ClientKind.VSCODE).is_needed
    assert desk.raw == PLAIN.encode()


def test_connection_of_continue_keeps_a_model_of_the_same_name(desk: Desk) -> None:
    raw = b'models:\n  - name: byok # mine\n    model: "own"\n  - name: x\n'
    desk.lay(raw)
    desk.connect(ClientKind.CONTINUE)
    desk.edit(ClientKind.CONTINUE)
    desk.disconnect(ClientKind.CONTINUE)
    found = TEXT_EDITORS[ClientKind.CONTINUE.text_format].read(
        desk.file.read_text(), ("models", "name=byok")
    )
    assert found == {"name": "byok", "model": "own"}


DAEMON = DaemonAddress(
    "http://127.0.0.1:8317", TOKEN, PurePosixPath("/s/token"), "byok:box:m"
)


def paths(client: ClientKind, text: str = "") -> dict[str, object]:
    return {" > ".join(path): v for path, v in settings_for(client, DAEMON, text)}


@pytest.mark.parametrize("client", [kind for kind in ClientKind if kind.is_editor])
def test_wanted_settings_of_editors_are_the_documented_pair(client: ClientKind) -> None:
    assert paths(client) == {
        "augment.advanced.completionURL": "http://127.0.0.1:8317",
        "augment.advanced.apiToken": TOKEN,
    }


def test_wanted_settings_of_editors_stand_in_an_object_that_there_is() -> None:
    assert list(paths(ClientKind.VSCODE, OBJECT)) == [
        "augment.advanced > completionURL",
        "augment.advanced > apiToken",
    ]
    assert list(paths(ClientKind.VSCODE, BOTH)) == [
        "augment.advanced > completionURL",
        "augment.advanced.completionURL",
        "augment.advanced > apiToken",
    ]


def test_wanted_settings_of_codex_name_the_file_of_the_token() -> None:
    found = paths(ClientKind.CODEX)
    assert found["model_providers > byok > base_url"] == "http://127.0.0.1:8317/v1"
    assert found["model_providers > byok > auth > command"] == "cat"
    assert found["model_providers > byok > auth > args"] == ["/s/token"]
    assert TOKEN not in str(found)


def test_wanted_settings_of_codex_on_windows_use_its_own_command() -> None:
    daemon = DAEMON._replace(token_file=PureWindowsPath("C:\\byok\\token"))
    found = dict(settings_for(ClientKind.CODEX, daemon, windows=True))
    here = ("model_providers", "byok", "auth")
    assert found[*here, "command"] == "cmd"
    assert found[*here, "args"] == ["/d", "/c", "type", "C:\\byok\\token"]


def test_wanted_settings_of_codex_leave_a_variable_for_the_token() -> None:
    assert [p for p in paths(ClientKind.CODEX, OWN_PROVIDER) if "auth" in p] == []


def test_wanted_settings_of_opencode_name_the_file_of_the_token() -> None:
    found = paths(ClientKind.OPENCODE)
    assert found["provider > byok > options > apiKey"] == "{file:/s/token}"
    assert found["model"] == "byok/byok:box:m"
    assert "provider > byok > models > byok:box:m > name" in found


def test_wanted_settings_say_that_the_model_takes_tools_and_pictures() -> None:
    found = paths(ClientKind.OPENCODE)
    taken = found["provider > byok > models > byok:box:m > modalities > input"]
    assert taken == ["text", "image"]
    entry = dict(settings_for(ClientKind.CONTINUE, DAEMON))["models", "name=byok"]
    assert isinstance(entry, dict)
    assert entry["capabilities"] == ["tool_use", "image_input"]


CATALOG = {
    "default": "byok:box:m",
    "models": [
        {"id": "byok:box:m", "model": "m", "facts": {"window": 9000, "max_output": 70}},
        {"id": "byok:box:n", "model": "n", "facts": {"window": 9, "loaded_window": 5}},
    ],
}


@pytest.mark.parametrize(
    ("wanted", "known"),
    [
        ("", ("byok:box:m", 9000, 70)),
        ("byok:box:n", ("byok:box:n", 5, 0)),
        ("n", ("n", 5, 0)),
        ("other", ("other", 0, 0)),
    ],
)
def test_what_is_known_of_the_model_comes_with_the_address(
    wanted: str, known: tuple[str, int, int]
) -> None:
    assert DAEMON.with_model(CATALOG, wanted)[3:] == known


def test_wanted_settings_have_the_window_where_it_is_known() -> None:
    daemon = DAEMON._replace(window=9000, most_output=70)
    limit = ("provider", "byok", "models", DAEMON.model, "limit")
    wanted: dict[ClientKind, dict[tuple[str, ...], int]] = {
        ClientKind.CODEX: {("model_context_window",): 9000},
        ClientKind.OPENCODE: {(*limit, "context"): 9000, (*limit, "output"): 70},
    }
    for client, more in wanted.items():
        known = dict(settings_for(client, daemon))
        assert known == {**dict(settings_for(client, DAEMON)), **more}
    alone = daemon._replace(most_output=0)  # opencode takes no limit without the other
    assert settings_for(ClientKind.OPENCODE, alone) == settings_for(
        ClientKind.OPENCODE, DAEMON
    )
    entry = dict(settings_for(ClientKind.CONTINUE, daemon))["models", "name=byok"]
    assert isinstance(entry, dict)
    assert entry["defaultCompletionOptions"] == {"contextLength": 9000}


@pytest.mark.parametrize("own", [b"", b"model_context_window = 7\n"])
def test_a_window_of_another_model_does_not_stay(desk: Desk, own: bytes) -> None:
    known = desk._replace(address=desk.address._replace(window=9000))
    known.lay(own)
    known.connect(ClientKind.CODEX)
    assert b"model_context_window = 9000" in (desk.raw or b"")
    desk.connect(ClientKind.CODEX)
    assert b"9000" not in (desk.raw or b"")
    assert own in (desk.raw or b"")
    desk.disconnect(ClientKind.CODEX)
    assert desk.raw == own


@pytest.mark.parametrize(
    "client", [ClientKind.CODEX, ClientKind.OPENCODE, ClientKind.CONTINUE]
)
def test_a_known_window_goes_with_the_rest(desk: Desk, client: ClientKind) -> None:
    desk = desk._replace(address=desk.address._replace(window=9000, most_output=70))
    desk.lay(b"{}" if client is ClientKind.OPENCODE else b"")
    desk.connect(client)
    assert b"9000" in (desk.raw or b"")
    desk.edit(client)
    desk.disconnect(client)
    assert b"9000" not in (desk.raw or b"")


ENTRY = {"url": "http://127.0.0.1:8317/mcp"}
HEADERS = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
SERVERS = '{\n  // mine\n  "%s": { "docs": { "command": "x" } },\n  "z": [1]\n}\n'


@pytest.mark.parametrize(
    ("client", "raw", "path", "entry"),
    [
        (
            ClientKind.CURSOR,
            SERVERS % "mcpServers",
            ("mcpServers", "byok"),
            {**ENTRY, **HEADERS},
        ),
        (
            ClientKind.VSCODE,
            SERVERS % "servers",
            ("servers", "byok"),
            {"type": "http", **ENTRY, **HEADERS},
        ),
        (
            ClientKind.CODEX,
            '[mcp_servers.docs]\ncommand = "x" # mine\n',
            ("mcp_servers", "byok"),
            {**ENTRY, "http_headers": HEADERS["headers"]},
        ),
        (
            ClientKind.CODEX,
            '[mcp_servers.byok]\nbearer_token_env_var = "T"\n',
            ("mcp_servers", "byok"),
            {**ENTRY, "bearer_token_env_var": "T"},
        ),
        (
            ClientKind.OPENCODE,
            SERVERS % "mcp",
            ("mcp", "byok"),
            {
                "type": "remote",
                **ENTRY,
                "headers": {"Authorization": "Bearer {file:/t/token}"},
                "oauth": False,
            },
        ),
        (
            ClientKind.OPENCODE,
            '{"mcp": {"servers": {}}}',
            ("mcp", "servers", "byok", "oauth"),
            False,
        ),
        (
            ClientKind.CLAUDE_CODE,
            SERVERS % "mcpServers",
            ("mcpServers", "byok", "type"),
            "http",
        ),
    ],
    ids=lambda value: value if isinstance(value, ClientKind) else None,
)
def test_byok_is_among_the_mcp_servers_and_goes_without_a_trace(
    desk: Desk, client: ClientKind, raw: str, path: tuple[str, ...], entry: object
) -> None:
    desk = desk._replace(address=desk.address._replace(token_file=Path("/t/token")))
    before = raw.encode()
    desk.lay(before)
    desk.connect(client, mcp=True)
    editor = TEXT_EDITORS[client.text_format]
    assert editor.read((desk.raw or b"").decode(), path) == entry
    desk.edit(client)
    desk.disconnect(client)
    assert b"".join((desk.raw or b"").split()) == b"".join(
        with_own(client, before).split()
    )
    desk.lay(before)
    desk.connect(client, mcp=True)
    if client.facts.names_model:  # its models are in the same file, and go with it
        desk.connect(client)
        desk.connect(client, mcp=True)
    desk.disconnect(client)
    assert desk.raw == before
    assert desk.backups() == []


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="a command of the shell")
def test_claude_code_is_told_the_header_by_a_command(tmp_path: Path) -> None:
    file = tmp_path / "it's a token"
    file.write_text(f"{TOKEN}\n")
    address = DaemonAddress("http://127.0.0.1:1", "", file)
    settings = dict(settings_for(ClientKind.CLAUDE_CODE, address, mcp=True))
    helper = str(settings[("mcpServers", "byok", "headersHelper")])
    ran = subprocess.run(["sh", "-c", helper], capture_output=True, check=True)
    assert json.loads(ran.stdout) == HEADERS["headers"]


@pytest.mark.parametrize("client", [kind for kind in ClientKind if not kind.is_editor])
def test_no_client_gets_the_settings_of_another(client: ClientKind) -> None:
    editor = {
        mcp: {
            setting.path for setting in settings_for(ClientKind.VSCODE, DAEMON, mcp=mcp)
        }
        for mcp in (False, True)
    }
    for mcp, paths in editor.items():
        own = settings_for(client, DAEMON, mcp=mcp)
        assert paths.isdisjoint(setting.path for setting in own)


def test_of_two_connects_at_the_same_moment_one_counts(desk: Desk) -> None:
    raw = b'model = "o3"\n'
    desk.lay(raw)
    client, store = ClientKind.CODEX, desk.connector.backups
    failures = list[ConfigError]()
    change, other = (
        desk.connector.plan_connect(client, desk.file, desk.address, mcp=mcp)
        for mcp in (False, True)
    )

    def carry_out(connector: FileConnector, change: FileChange) -> None:
        try:
            connector.carry_out(change)
        except ConfigError as error:
            failures.append(error)

    thread = threading.Thread(target=carry_out, args=(desk.connector, other))
    slow = SlowStore(desk.file.parent.parent / "backups", thread)
    carry_out(FileConnector(slow, desk.connector.home), change)
    thread.join()
    assert len(failures) == 1
    assert desk.raw in (change.after, other.after)
    assert store.find(client, desk.file) is not None
    desk.disconnect(client)
    assert desk.raw == raw
