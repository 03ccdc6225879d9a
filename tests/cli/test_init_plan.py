"""What is added to a settings file: nothing else of it may change."""

import difflib
import tomllib

import pytest

from byok.cli.init_plan import SettingsPlan, plan_settings
from byok.cli.init_survey import ChosenModel
from byok.core.errors import ConfigError
from byok.settings import UpstreamSettings

OLLAMA = UpstreamSettings(type="ollama")
MODELS = [
    ChosenModel("default", "coder:30b", ""),
    ChosenModel("commit", "tiny", ""),
    ChosenModel("title", "tiny", ""),
    ChosenModel("completion", "", "that of chats"),
]
ROUTING = {
    "default": "byok:ollama:coder:30b",
    "models": {"commit": "byok:ollama:tiny", "title": "byok:ollama:tiny"},
}
COMMENTED = b"""# My settings, with care.

[server]   # where
port = 9000  # mine

# a comment that belongs to the next table
[chat]
temperature   =    0.5

"quoted key".x = 1
"""


def plan(before: bytes | None, name: str = "ollama") -> SettingsPlan:
    return plan_settings(before, name, OLLAMA, MODELS)


def removed_lines(plan: SettingsPlan) -> list[bytes]:
    old, new = (plan.before or b"").splitlines(True), plan.after.splitlines(True)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        line
        for tag, begin, end, _, _ in matcher.get_opcodes()
        if tag != "equal"
        for line in old[begin:end]
    ]


def test_a_new_file_names_the_upstream_and_the_models() -> None:
    made = plan(None)
    assert tomllib.loads(made.after.decode()) == {
        "upstreams": {"ollama": {"type": "ollama"}},
        "routing": ROUTING,
    }
    assert made.after.startswith(b"# Made by byok init.")


FILES = [
    pytest.param(b"", id="empty"),
    pytest.param(b"# only a comment", id="no last line end"),
    pytest.param(COMMENTED.replace(b'"quoted key".x = 1\n', b""), id="comments"),
    pytest.param(b"[server]\r\nport = 9001\r\n# x\r\n", id="crlf"),
    pytest.param(b"[upstreams.openai]\nmodel = 'gpt-5'\n# end\n", id="other upstream"),
    pytest.param(b"[upstreams]\nopenai = { model = 'm' }\n", id="inline"),
    pytest.param(b"[routing.aliases]\nbest = 'byok:ollama:x' # y\n", id="super table"),
    pytest.param(
        b"[routing]\n# nothing yet\n[server]\nport = 9001\n", id="empty table"
    ),
    pytest.param(b"[routing.models]\nedit = 'byok:ollama:x'\n", id="models"),
    pytest.param(b"routing.aliases.a = 'byok:ollama:x'\n", id="dotted"),
]


@pytest.mark.parametrize("before", FILES)
def test_a_file_only_gets_lines_added(before: bytes) -> None:
    made = plan(before)
    # A last line without an end gets one.
    assert removed_lines(made) == (
        [] if before.endswith(b"\n") else [*before.splitlines()]
    )
    assert (b"\r\n" in made.after) is (b"\r\n" in before)
    if b"\r\n" in before:
        assert made.after.count(b"\r\n") == made.after.count(b"\n")
    given = tomllib.loads(made.after.decode())
    assert given["upstreams"]["ollama"] == {"type": "ollama"}
    assert given["routing"]["default"] == ROUTING["default"]
    assert given["routing"]["models"]["commit"] == "byok:ollama:tiny"


@pytest.mark.parametrize("before", [None, *FILES])
def test_the_second_time_changes_nothing(before: bytes | None) -> None:
    once = plan(before)
    assert once.is_needed
    again = plan(once.after)
    assert (again.is_needed, again.after, again.kept) == (False, once.after, ())


def test_bytes_outside_of_the_added_lines_stay() -> None:
    before = COMMENTED.replace(b'"quoted key".x = 1\n', b"")
    after = plan(before).after
    assert after.startswith(before)


def test_what_the_user_set_stays_and_is_named() -> None:
    before = (
        b"[upstreams.ollama]\nbase_url = 'http://127.0.0.1:9'\nmodel = 'x'\n"
        b"[routing]\ndefault = 'byok:ollama:mine'\n"
    )
    made = plan(before)
    assert not made.is_needed
    assert made.kept == (("routing", "default"),)


def test_models_do_not_join_a_default_of_another_upstream() -> None:
    before = b"[upstreams.openai]\n[routing]\ndefault = 'byok:openai:gpt-5'\n"
    given = tomllib.loads(plan(before).after.decode())
    assert given["routing"] == {"default": "byok:openai:gpt-5"}
    assert "ollama" in given["upstreams"]


def test_a_small_model_of_the_user_serves_small_jobs() -> None:
    before = b"[upstreams.ollama]\n[routing.models]\nsmall = 'byok:ollama:mini'\n"
    given = tomllib.loads(plan(before).after.decode())
    assert given["routing"]["models"] == {"small": "byok:ollama:mini"}


def test_an_address_of_its_own_is_written() -> None:
    section = UpstreamSettings(base_url="http://127.0.0.1:9000/v1")
    made = plan_settings(None, "custom", section, [])
    assert tomllib.loads(made.after.decode())["upstreams"] == {
        "custom": {"base_url": "http://127.0.0.1:9000/v1"}
    }


@pytest.mark.parametrize(
    "model", ['a"b', "a'b", "a\\b", "a]b", "[x] port", "\u4f60\u597d", "a#b", 'x"""y']
)
def test_a_hostile_name_of_a_model_stays_a_value(model: str) -> None:
    made = plan_settings(None, "ollama", OLLAMA, [ChosenModel("default", model, "")])
    given = tomllib.loads(made.after.decode())
    assert given["routing"] == {"default": f"byok:ollama:{model}"}
    assert set(given) == {"upstreams", "routing"}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(b"not toml", id="no toml"),
        pytest.param(b"\xff\xfe", id="no utf-8"),
        pytest.param(b"routing = 3\n", id="no table"),
        pytest.param(b"[nonsense]\nx = 1\n", id="unknown section"),
        pytest.param(b"[[" * 5000, id="deep"),
    ],
)
def test_a_file_that_cannot_be_extended_is_refused(before: bytes) -> None:
    with pytest.raises(ConfigError, match="Nothing was changed"):
        plan(before)
