"""From files, variables and flags to settings; what is wrong is a clear ConfigError."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.errors import ConfigError
from byok.settings import (
    Settings,
    check_settings,
    foreign_variables,
    load_settings,
    mask_settings,
    upstream_named,
)
from byok.settings.loading import decode_settings, make_settings
from byok.settings.section import SettingFault, faults_of
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


@pytest.mark.parametrize("content", ["", "# nothing\r\n"])
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


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("MODELS", '["a", "b"]', "models", ["a", "b"]),
        ("TIMEOUT", "9", "timeout", 9.0),
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


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\0" * 10_000_000, "too large"),
        (f"# {CANARY}\0", "line 1"),
        (f"[{'a.' * 10_000}a]", "unknown key"),
        (f"a = {'[' * 60_000}", "nested too deeply"),
        (f"a = {'9' * 5000}", "too long"),
        (f'a = 1\na = "{CANARY}"\n', "line 2"),
        (f"\ufeff# {CANARY}\r\na = 1\r\n", "unknown key"),
        (f'port = "{CANARY}\n', "line 1"),
        (f"# {CANARY} \xe9".encode("latin-1"), "valid UTF-8"),
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
        ('[server]\nhost = "0.0.0.0"', "server.host", "unknown key"),
        (f'[server]\nprot = "{CANARY}"', "server.prot", "Did you mean port?"),
        (f'[routing.models]\nedti = "{CANARY}"', "models.edti", "Did you mean edit?"),
        (f'model = "{CANARY}"', "model", "belongs under [upstreams.NAME]"),
        (f'port = "{CANARY}"', "port", "belongs under [server]"),
        (f'[upstreams.box]\nurl = "{CANARY}"', "box.url", "Did you mean base_url?"),
        (f'server = "{CANARY}"', "server", "valid dictionary"),
        ("[upstreams.box]", "upstreams.box.base_url", "missing"),
        (
            f'{SECTION}api_key = "{CANARY}"',
            "upstreams.box.api_key",
            "Did you mean api_key_env?",
        ),
        (f'{SECTION}type = "{CANARY}"', "upstreams.box.type", "must be one of: "),
        (f'{SECTION}type = "opnrouter"', "box.type", "Did you mean openrouter?"),
        (f'{SECTION}dialect = "{CANARY}"', "upstreams.box.dialect", "openai_chat"),
        (
            f'[upstreams.box]\nbase_url = "https://me:{CANARY}@host"',
            "upstreams.box.base_url",
            "not contain a user, password",
        ),
        (f'[tools]\nrepair = "{CANARY}"', "tools.repair", "'lossless'"),
        (f'[prompts]\nchatty = "{CANARY}"', "[prompts]", "chat-stream, chat"),
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
@pytest.mark.parametrize("mode", [0o602, 0o666], ids=oct)
def test_config_file_that_others_can_change_is_refused(write: Write, mode: int) -> None:
    path = write(f"# {CANARY}")
    path.chmod(mode)
    error = failure(path)
    assert str(path) in str(error)
    assert "chmod go-w" in error.hint


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away"
)
def test_config_file_of_another_user_is_refused(write: Write) -> None:
    path = write("")
    os.chown(path, 12345, -1)
    assert "belongs to another user" in str(failure(path))


def test_config_pipe_instead_of_a_file_is_refused_without_waiting(
    tmp_path: Path,
) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    path = tmp_path / "config.toml"
    os.mkfifo(path, 0o600)
    assert "plain file" in str(failure(path))


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
        ("BYOK_SERVER_PORT", "BYOK_SERVER__PORT"),
        ("BYOK_HOMES", "BYOK_HOME"),
        ("BYOK_BASE_URL", "BYOK_UPSTREAMS__<NAME>__BASE_URL"),
        ("BYOK_", None),
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


@pytest.mark.parametrize("name", ["BYOK_KEY_OPENAI", "BYOK_VAULT_PASSPHRASE"])
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


@pytest.mark.parametrize("name", ["BYOK_SERVER", "BYOK_UPSTREAMS__BOX__MODELS"])
def test_config_variable_with_invalid_json_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, CANARY)
    error = failure(tmp_path / "config.toml")
    assert name.split("_")[1].lower() in str(error)
    assert "JSON" in error.hint


@pytest.mark.parametrize("port", [CANARY, "1.5"])
def test_config_error_in_a_flag_alone_blames_the_command_line(
    write: Write, port: str
) -> None:
    error = failure(write("[server]\nport = 9000\n"), {"server": {"port": port}})
    assert str(error).startswith("the command line: server.port: ")
    path = write("[server]\nprot = 9000\n")
    error = failure(path, {"server": {"port": 9001}})
    assert str(error).startswith(f"{path}: ")


PIECES = [*fuzzing.TARGET.words, *fuzzing.TARGET.seeds, b"[x]", b"[[chat]]"]


@given(st.lists(st.sampled_from(PIECES), max_size=6).map(b"\n".join))
@pytest.mark.case("B58")
def test_config_any_settings_load_or_are_refused_without_their_values(
    settings: bytes,
) -> None:
    fuzzing.check(b"\x01" + settings)


HOSTED: dict[str, Any] = {"upstreams": {"box": {"base_url": "https://h/v1"}}}
FINE: list[dict[str, Any]] = [
    {"routing": {"default": "byok:ollama:m"}},
    {**HOSTED, "embeddings": {"upstream": "box", "model": "m"}},
    {
        **HOSTED,
        "routing": {
            "aliases": {"fast": "byok:box:m"},
            "default": "fast",
            "fallback": {"chat": ["fast", "byok:box:n"]},
        },
    },
]
WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {**HOSTED, "routing": {"default": "byok:ollama:m"}},
        "default model 'byok:ollama:m'",
    ),
    (
        {**HOSTED, "routing": {"models": {"title": "byok:a:b"}}},
        "title model 'byok:a:b'",
    ),
    ({**HOSTED, "routing": {"aliases": {"f": "byok:a:b"}}}, "f model 'byok:a:b'"),
    (
        {**HOSTED, "routing": {"fallback": {"chat": ["byok:a:b"]}}},
        "chat fallback model 'byok:a:b' names",
    ),
    ({"routing": {"default": "byok:nobody:m"}}, "default model 'byok:nobody:m'"),
    ({"network": {"ca_file": "/nowhere/ca.pem"}}, "network.ca_file"),
    ({"upstreams": {"openai": {"ca_file": "/nowhere"}}}, "upstreams.openai.ca_file"),
]


@pytest.mark.parametrize("given", FINE, ids=str)
def test_config_check_accepts_settings_that_can_be_served(
    given: dict[str, Any],
) -> None:
    check_settings(Settings(**given))


@pytest.mark.parametrize(("given", "told"), WRONG, ids=[told for _, told in WRONG])
def test_config_check_finds_what_serve_would_refuse(
    given: dict[str, Any], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        check_settings(Settings(**given))


def test_config_check_includes_the_options_of_serve() -> None:
    check_settings(Settings(**HOSTED), "demo", "byok:demo:echo")
    check_settings(Settings(**HOSTED), "ollama", "m")
    with pytest.raises(ConfigError, match="'byok:demo:echo'"):
        check_settings(Settings(**HOSTED), "ollama", "byok:demo:echo")
    with pytest.raises(ConfigError, match="Unknown upstream 'olama'"):
        check_settings(Settings(), "olama")
    with pytest.raises(ConfigError) as caught:
        check_settings(Settings(), f"sk-proj-{CANARY}")
    assert CANARY not in f"{caught.value}{caught.value.hint}"


def test_masking_hides_secrets_and_shows_the_rest() -> None:
    box = {
        "base_url": "https://box.example",
        "api_key_cmd": ["pass", "show", CANARY],
        "headers": {"X-Team": CANARY},
        "query": {"code": CANARY},
        "extra_body": {"user": CANARY},
        "proxy": f"http://{CANARY}@proxy.example:3128",
    }
    team = {"url": "https://q.example", "team": "a"}
    team["proxy"] = f"http://me:p@/{CANARY}@proxy.example:2"
    settings = Settings(
        embeddings={"team": team},
        prompts={"chat": f"see https://me:{CANARY}@docs.example/@a?b=c@d"},
        network={"proxy": f"http://me:{CANARY}@proxy.example:1"},
        chat={"headers": {"X-Everybody": CANARY}, "temperature": 0.5},
        search={"remote": {"url": "https://s.example", "headers": {"X-Org": CANARY}}},
        upstreams={"box": box, "query": {"base_url": "https://named.example"}},
    )
    shown = mask_settings(settings)
    assert CANARY not in json.dumps(shown)
    assert shown["chat"]["temperature"] == 0.5
    assert shown["network"]["proxy"] == "http://proxy.example:1"
    assert shown["upstreams"]["box"]["proxy"] == "http://proxy.example:3128"
    assert shown["embeddings"]["team"]["proxy"] == "http://proxy.example:2"
    assert shown["prompts"]["chat"] == "see https://docs.example/@a?b=c@d"
    assert shown["upstreams"]["box"]["api_key_cmd"] == ["pass"]
    assert shown["upstreams"]["box"]["headers"] == {"X-Team": "***"}
    assert shown["upstreams"]["query"]["base_url"] == "https://named.example"


OWN = {"base_url": "https://box.example/v1"}


@pytest.mark.parametrize("wanted", ["olama", "OLLAMA"])
def test_an_unknown_upstream_is_told_with_those_that_are_known(wanted: str) -> None:
    settings = Settings(upstreams={"box": OWN, "ollama": {}})
    with pytest.raises(ConfigError, match="Unknown upstream") as caught:
        upstream_named(wanted, settings)
    assert "ollama?" in caught.value.hint
    with pytest.raises(ConfigError, match="address of your resource"):
        upstream_named("azure", settings)
    with pytest.raises(ConfigError, match="Unknown upstream") as caught:
        upstream_named("nothing like it", settings)
    _, _, names = caught.value.hint.partition("Use one of ")
    known = names.partition(", or")[0].split(", ")
    assert known[:2] == ["box", "ollama"]
    assert {"demo", "openai", "azure"} < set(known)
    assert len(known) == len(set(known))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://canary.example/v1", "is plain http to another machine"),
        ("https://me:canary@host/v1", "must not contain a user"),
        ("https://host/v1?key=canary", "must not contain a query: use query = "),
    ],
)
def test_what_is_wrong_with_a_url_of_the_command_line_is_told(
    url: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=f"The upstream's URL {why}") as caught:
        upstream_named(url, Settings())
    assert "canary" not in f"{caught.value.sentence} {caught.value.__cause__}"


def test_an_address_without_http_is_shown_as_a_url() -> None:
    wanted = "localhost:11434"
    with pytest.raises(ConfigError, match="Unknown upstream") as caught:
        upstream_named(wanted, Settings())
    assert caught.value.hint.endswith(f"such as http://{wanted}")


FILE = Path("config.toml")


def error_of(text: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        make_settings(decode_settings(text.encode(), FILE), FILE)
    return caught.value


def test_an_error_of_the_settings_knows_its_settings() -> None:
    error = error_of("[chat]\ntop_p = 2\n[server]\nport = 70000\n")
    first, second = sorted(faults_of(error))
    assert first.path == ("chat", "top_p")
    assert "less than or equal to 1" in first.message
    assert second == SettingFault(("server", "port"), second.message)
    assert not second.message.startswith("Value error")


def test_a_fault_of_all_settings_together_has_no_path() -> None:
    (fault,) = faults_of(error_of('[upstreams.Bad]\nbase_url = "http://127.0.0.1"\n'))
    assert fault.path == ()
    assert "'Bad'" in fault.message


def test_the_guilty_setting_is_the_alias_though_a_purpose_has_its_name() -> None:
    settings = Settings.model_validate(
        {"routing": {"aliases": {"title": "byok:gone:m"}}, "upstreams": {"ollama": {}}}
    )
    with pytest.raises(ConfigError) as caught:
        check_settings(settings)
    [fault] = faults_of(caught.value)
    assert fault.causes[0] == ("routing", "aliases", "title")
