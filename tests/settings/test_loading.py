"""From files, variables and flags to settings; every failure is a clear ConfigError."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byok.core.errors import ConfigError
from byok.settings import Settings, foreign_variables, load_settings
from tests.fakes.commands import Cli
from tools.fuzz import config as fuzzing

CANARY = "sk-canary0123456789abcdef"
Write: TypeAlias = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write config.toml as its owner would."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "config.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o600)
        return path

    return write


def failure(path: Path, overrides: dict[str, Any] | None = None) -> ConfigError:
    """Load what cannot be loaded; no text on the way may show the canary."""
    with pytest.raises(ConfigError) as caught:
        load_settings(path, overrides)
    error: BaseException | None = caught.value
    while error is not None:
        assert CANARY not in f"{error!r} {error}"
        error = error.__cause__
    return caught.value


# --- where a setting comes from ---


def test_config_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "config.toml") == Settings()


@pytest.mark.parametrize("content", ["", "\n", "# nothing\r\n"])
@pytest.mark.case("B97")
def test_config_empty_file_gives_the_defaults(write: Write, content: str) -> None:
    assert load_settings(write(content)) == Settings()


@pytest.mark.parametrize(
    ("flag", "variable", "file", "port"),
    [
        ("9001", "9002", "9003", 9001),
        ("", "9002", "9003", 9002),
        ("", "", "9003", 9003),
        ("", "", "", 8317),
        ("9001", "", "9003", 9001),
        ("9001", "9002", "", 9001),
    ],
)
def test_config_precedence_is_flags_variables_file_defaults(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    flag: str,
    variable: str,
    file: str,
    port: int,
) -> None:
    path = write(f"[server]\nport = {file}\n" if file else "")
    if variable:
        monkeypatch.setenv("BYOK_SERVER__PORT", variable)
    overrides = {"server": {"port": flag}} if flag else None
    assert load_settings(path, overrides).server.port == port


BOX = '[upstreams.box]\nbase_url = "https://file.example/v1"\nmodel = "from-file"\n'


def test_config_variable_replaces_one_key_and_keeps_its_neighbours(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__BOX__MODEL", "from-variable")
    box = load_settings(write(BOX)).upstreams["box"]
    assert (box.base_url, box.model) == ("https://file.example/v1", "from-variable")


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("BASE_URL", "https://host", "base_url", "https://host"),
        ("MODELS", '["a", "b"]', "models", ["a", "b"]),
        ("TIMEOUT", "9", "timeout", 9.0),
        ("HEADERS", '{"X-Team": "7"}', "headers", {"X-Team": "7"}),
        ("EXTRA_BODY", '{"seed": 1}', "extra_body", {"seed": 1}),
        ("API_KEY_CMD", '["pass", "box"]', "api_key_cmd", ["pass", "box"]),
        ("ALLOW_INSECURE_HTTP", "true", "allow_insecure_http", True),
        ("MODEL", "123", "model", "123"),
        ("MODEL", "[x", "model", "[x"),
    ],
)
def test_config_variable_may_set_any_upstream_key(
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    text: str,
    key: str,
    value: object,
) -> None:
    monkeypatch.setenv(f"BYOK_UPSTREAMS__BOX__{variable}", text)
    assert getattr(load_settings(write(BOX)).upstreams["box"], key) == value


def test_config_variables_alone_can_define_an_upstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOK_UPSTREAMS__OPENAI__MODEL", "gpt-x")
    monkeypatch.setenv("BYOK_UPSTREAMS__MY-BOX__BASE_URL", "https://host")
    upstreams = load_settings(tmp_path / "config.toml").upstreams
    assert upstreams["openai"].type == "openai"
    assert upstreams["my-box"].base_url == "https://host"


@pytest.mark.case("B97")
def test_config_file_may_have_windows_line_ends(write: Write) -> None:
    assert load_settings(write("[server]\r\nport = 9000\r\n")).server.port == 9000


# --- B97, B99: files that are wrong ---


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(b"\0" * 10_000_000, "too large", id="10 MB of zeros"),
        pytest.param(f"a = '{CANARY}\0'", "line 1", id="NUL in a string"),
        pytest.param(f"# {CANARY}\0", "line 1", id="NUL in a comment"),
        pytest.param(f"[{'a.' * 100_000}a]", "too large", id="1e5 nested tables"),
        pytest.param(f"[{'a.' * 10_000}a]", "unknown key", id="1e4 nested tables"),
        pytest.param(f"a = {'{a=' * 20_000}", "nested too deeply", id="inline tables"),
        pytest.param(f"a = {'[' * 60_000}", "nested too deeply", id="nested arrays"),
        pytest.param(f"a = {'9' * 5000}", "too long", id="endless number"),
        pytest.param(f'a = 1\na = "{CANARY}"\n', "line 2", id="duplicate key"),
        pytest.param(f"{BOX}{BOX}# {CANARY}", "line 4", id="duplicate table"),
        pytest.param(
            f"\ufeff# {CANARY}\r\na = 1\r\n", "unknown key", id="CRLF and BOM"
        ),
        pytest.param(f"port = {CANARY}", "line 1", id="no quotes"),
        pytest.param(f'port = "{CANARY}\n', "line 1", id="open string"),
        pytest.param(f"# {CANARY} \xe9".encode("latin-1"), "valid UTF-8", id="Latin-1"),
    ],
)
@pytest.mark.case("B97")
def test_config_file_with_syntax_errors_is_refused(
    write: Write, content: str | bytes, told: str
) -> None:
    path = write(content)
    error = failure(path)
    assert told in str(error)
    assert str(path) in str(error)
    assert len(error.sentence) < 2000


SECTION = '[upstreams.box]\nbase_url = "https://host"\n'


@pytest.mark.parametrize(
    ("content", "key", "told"),
    [
        (f'[server]\nport = "{CANARY}"', "server.port", "valid integer"),
        ("[server]\nport = 80", "server.port", "from 1024 to 65535"),
        ("[server]\nport = 65536", "server.port", "from 1024 to 65535"),
        ('[server]\nport = "abc"', "server.port", "valid integer"),
        ('[server]\nhost = "0.0.0.0"', "server.host", "unknown key"),
        ('[server]\nhost = "::"', "server.host", "unknown key"),
        (f'[server]\nprot = "{CANARY}"', "server.prot", "Did you mean port?"),
        ("[routing.official]\nmodle = 1", "official.modle", "Did you mean models?"),
        (f'[routing.models]\nedti = "{CANARY}"', "models.edti", "Did you mean edit?"),
        (f'[sever]\nport = "{CANARY}"', "sever", "Did you mean server?"),
        (f'server = "{CANARY}"', "server", "valid dictionary"),
        (f'upstreams = "{CANARY}"', "upstreams", "valid dictionary"),
        (f'[upstreams]\nbox = "{CANARY}"', "upstreams.box", "valid dictionary"),
        ("[upstreams.box]", "upstreams.box.base_url", "missing"),
        (
            f'{SECTION}api_key = "{CANARY}"',
            "upstreams.box.api_key",
            "Did you mean api_key_env?",
        ),
        (f'{SECTION}modle = "{CANARY}"', "upstreams.box.modle", "Did you mean model?"),
        (f'{SECTION}models = "{CANARY}"', "upstreams.box.models", "valid list"),
        (f'{SECTION}type = "{CANARY}"', "upstreams.box.type", "must be one of: "),
        (f'{SECTION}dialect = "{CANARY}"', "upstreams.box.dialect", "must be one of: "),
        (
            f'[upstreams.box]\nbase_url = "https://me:{CANARY}@host"',
            "upstreams.box.base_url",
            "not contain a user, password",
        ),
        (
            f'[upstreams.box]\nbase_url = "http://{CANARY}.example"',
            "upstreams.box.base_url",
            "allow_insecure_http",
        ),
        (f'[tools]\nrepair = "{CANARY}"', "tools.repair", "'lossless'"),
        (f'[log]\nlevel = "{CANARY}"', "log.level", "debug|info|warning|error"),
        (f'[prompts]\nchatty = "{CANARY}"', "[prompts]", "chat-stream, chat"),
        ("[prompts]\nchat = 1", "prompts.chat", "valid string"),
    ],
)
@pytest.mark.case("B97")
def test_config_error_names_the_file_the_key_and_what_is_expected(
    write: Write, content: str, key: str, told: str
) -> None:
    path = write(content)
    error = failure(path)
    assert key in str(error)
    assert told in str(error)
    assert str(path) in str(error)
    assert "byok config example" in error.hint


def test_config_errors_are_reported_together_up_to_a_limit(write: Write) -> None:
    error = failure(write("[sever]\n[chat]\ntemprature = 1\n"))
    assert "Did you mean server?" in str(error)
    assert "Did you mean temperature?" in str(error)
    many = failure(write("".join(f"[t{n}]\n" for n in range(5000))))
    assert len(str(many).splitlines()) == 10


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666], ids=oct)
def test_config_file_that_others_can_change_is_refused(write: Write, mode: int) -> None:
    path = write(f"# {CANARY}")
    path.chmod(mode)
    error = failure(path)
    assert str(path) in str(error)
    assert "chmod go-w" in error.hint


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_config_file_that_others_can_read_is_accepted(write: Write) -> None:
    path = write("[server]\nport = 9000\n")
    path.chmod(0o644)
    assert load_settings(path).server.port == 9000


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() == 0, reason="nothing is unreadable to root"
)
def test_config_file_that_is_unreadable_is_refused(write: Write) -> None:
    path = write(f"# {CANARY}")
    path.chmod(0)
    assert "cannot be read" in str(failure(path))


def test_config_file_below_a_plain_file_is_refused(write: Write) -> None:
    path = write("") / "config.toml"
    assert f"{path} cannot be read" in str(failure(path))


def test_config_folder_instead_of_a_file_is_refused(tmp_path: Path) -> None:
    assert f"{tmp_path} is not a file" in str(failure(tmp_path))


def test_config_pipe_instead_of_a_file_is_refused_without_waiting(
    tmp_path: Path,
) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    path = tmp_path / "config.toml"
    os.mkfifo(path, 0o600)
    assert "is not a file" in str(failure(path))


# --- variables and flags that are wrong ---


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("BYOK_SERVR__PORT", " Did you mean BYOK_SERVER__PORT?"),
        ("BYOK_NOTHING_LIKE__IT", ""),
        ("BYOK__TOML", ""),
    ],
)
def test_config_variable_with_an_unknown_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, guess: str
) -> None:
    monkeypatch.setenv(name, CANARY)
    error = failure(tmp_path / "config.toml")
    assert str(error) == f"Unknown environment variable {name}.{guess}"
    assert "BYOK_SERVER__PORT" in error.hint


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("BYOK_PORT", "BYOK_SERVER__PORT"),
        ("BYOK_SERVER_PORT", "BYOK_SERVER__PORT"),
        ("BYOK_HOMES", "BYOK_HOME"),
        ("BYOK_KEY", "BYOK_KEY_<NAME>"),
        ("BYOK_BASE_URL", "BYOK_UPSTREAMS__<NAME>__BASE_URL"),
        ("BYOK_", None),
        ("BYOK_OF_ANOTHER_PROGRAM", None),
    ],
)
def test_config_unknown_variable_gets_a_suggestion_and_a_warning_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, near: str | None
) -> None:
    monkeypatch.setenv(name, CANARY)
    assert load_settings(tmp_path / "config.toml") == Settings()
    [told] = foreign_variables()
    assert told.startswith(f"Ignoring the unknown environment variable {name}.")
    assert told.endswith(f"Did you mean {near}?" if near else f"variable {name}.")


def test_config_own_variables_are_not_unknown() -> None:
    names = ["BYOK_SERVER__PORT", "BYOK_UPSTREAMS", "BYOK_HOME", "BYOK_VENV", "HOME"]
    assert foreign_variables(dict.fromkeys(names, "x")) == []


@pytest.mark.parametrize(
    "name",
    [
        *("BYOK_HOME", "BYOK_SHARED", "BYOK_VENV"),
        *("BYOK_KEY_OPENAI", "BYOK_VAULT_PASSPHRASE"),
    ],
)
def test_config_other_environment_variables_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, CANARY)
    assert load_settings(tmp_path / "config.toml") == Settings()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("BYOK_SERVER__PORT", "valid integer"),
        ("BYOK_SERVER__PROT", "Did you mean port?"),
        ("BYOK_SERVER__HOST", "unknown key"),
        ("BYOK_CHAT__TEMPERATURE", "valid number"),
        ("BYOK_UPSTREAMS__BOX", "valid dictionary"),
        ("BYOK_UPSTREAMS__BOX__API_KEY", "unknown key"),
    ],
)
def test_config_error_in_a_variable_does_not_blame_the_file(
    write: Write, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    path = write("")
    monkeypatch.setenv(name, CANARY)
    error = failure(path)
    assert str(error).startswith(f"{name}: ")
    assert told in str(error)
    assert str(path) not in str(error)


@pytest.mark.parametrize(
    "name", ["BYOK_SERVER", "BYOK_UPSTREAMS", "BYOK_UPSTREAMS__BOX__MODELS"]
)
def test_config_variable_with_invalid_json_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, CANARY)
    error = failure(tmp_path / "config.toml")
    assert name.split("_")[1].lower() in str(error)
    assert "JSON" in error.hint


@pytest.mark.parametrize("port", [CANARY, "80", "65536", "-1", "1.5"])
def test_config_error_in_a_flag_blames_the_command_line(
    write: Write, port: str
) -> None:
    error = failure(write("[server]\nport = 9000\n"), {"server": {"port": port}})
    assert str(error).startswith("the command line: server.port: ")


# --- through the program ---


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("[" + "a." * 100_000 + "a]", "too large", id="nested tables"),
        pytest.param(f'[server]\nport = "{CANARY}"', "server.port", id="wrong type"),
        pytest.param(f'a = 1\na = "{CANARY}"\n', "line 2", id="duplicate key"),
        pytest.param('[server]\nhost = "0.0.0.0"', "server.host", id="host"),
    ],
)
@pytest.mark.case("B97")
def test_config_error_ends_the_program_with_exit_code_78(
    cli: Cli, write: Write, content: str, told: str
) -> None:
    done = cli("config", "check", "--config", write(content))
    assert (done.code, done.out) == (78, "")
    assert told in done.err
    assert CANARY not in done.err


# --- properties ---

LINES = st.sampled_from(
    [
        *(
            "[server]",
            "[upstreams.a]",
            "[upstreams.openai]",
            "[chat]",
            "[tools]",
            "[x]",
        ),
        *("[upstreams.a.headers]", "port = 0", 'base_url = "https://CANARY/v1"'),
        *(
            'type = "CANARY"',
            'type = "ollama"',
            "timeout = -1",
            'headers = {X = "CANARY"}',
        ),
        *(
            'repair = "CANARY"',
            "temperature = nan",
            "models = [1]",
            'api_key = "CANARY"',
        ),
        *("port = 1979-05-27", 'x = "CANARY', "a.b = 1", "= 1", "\ufeff", "[[chat]]"),
    ]
)
VARIABLES = st.dictionaries(
    st.sampled_from(
        [
            *("BYOK_SERVER__PORT", "BYOK_UPSTREAMS", "BYOK_UPSTREAMS__A__MODELS"),
            *("BYOK_CHAT__HEADERS", "BYOK_LOG__LEVEL", "BYOK_X", "BYOK_SERVER"),
        ]
    ),
    st.sampled_from(["", "CANARY", '["CANARY"]', '{"a": "CANARY"}', "1", "null", "[["]),
    max_size=2,
)


@settings(max_examples=150)
@given(st.lists(LINES, max_size=6), VARIABLES)
@pytest.mark.case("B58")
def test_config_any_settings_load_or_are_refused_without_their_values(
    lines: list[str], variables: dict[str, str]
) -> None:
    content = "\n".join(lines).replace("CANARY", CANARY).encode()
    fuzzing.check_settings(
        content, {k: v.replace("CANARY", CANARY) for k, v in variables.items()}
    )
