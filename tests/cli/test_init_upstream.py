"""byok init: what was found is shown, and one of it chosen."""

from dataclasses import replace
from typing import cast

import click
import pytest

from byok.cli.asker import Asker, NobodyAsker, YesAsker
from byok.cli.init_steps import choose_candidate, show_candidates
from byok.cli.init_survey import Candidate, FoundBy
from byok.core.errors import ConfigError
from byok.core.platform.paths import find_paths
from byok.dialects.model_facts import ModelFacts
from byok.settings import Settings, UpstreamSettings, load_settings
from byok.settings.keys import KeyLadder
from tests.fakes.answers import ScriptedPerson
from tests.fakes.ring import FakeRing, store_of

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
NOBODY = NobodyAsker("byok init --yes")


def choose(
    candidates: list[Candidate],
    asker: Asker,
    wanted: str = "",
    settings: Settings | None = None,
    **environ: str,
) -> Candidate:
    ladder = KeyLadder(environ=environ, keyring=store_of(FakeRing()))
    own = settings or load_settings(find_paths().config)
    return choose_candidate(candidates, wanted, own, ladder, asker)


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


def test_where_nothing_was_found_it_says_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_candidates([])
    told = capsys.readouterr().err
    assert "Ollama" in told
    assert "demo" in told


@pytest.mark.parametrize(
    ("answer", "name"),
    [("", "ollama"), ("1", "ollama"), ("2", "openai"), ("openai", "openai")],
)
def test_a_person_chooses_by_number_or_name(answer: str, name: str) -> None:
    assert choose([SERVER, VENDOR], ScriptedPerson(answer)).name == name


@pytest.mark.parametrize("wrong", ["0", "3", "99999999999", "nonsense", "ftp://x", ""])
def test_a_person_is_asked_again_after_a_wrong_answer(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    person = ScriptedPerson(wrong, "demo")
    candidates = [SERVER, VENDOR] if wrong else [BROKEN]
    assert choose(candidates, person).name == "demo"
    assert len(person.asked) == 2
    assert capsys.readouterr().err


def test_a_person_may_name_what_was_not_found() -> None:
    named = choose([], ScriptedPerson("openrouter"), OPENROUTER_API_KEY="sk-12345678")
    assert (named.found_by, named.key_source) == (FoundBy.NAME, "OPENROUTER_API_KEY")
    local = choose([], ScriptedPerson("http://127.0.0.1:9000/v1"))
    assert (local.name, local.section.base_url) == (
        "custom",
        "http://127.0.0.1:9000/v1",
    )


def test_a_person_may_leave() -> None:
    with pytest.raises(click.Abort):
        choose([SERVER], ScriptedPerson(None))


def test_yes_takes_the_best() -> None:
    assert choose([BROKEN, SERVER, VENDOR], YesAsker()).name == "ollama"


def test_nobody_gets_the_only_one_and_nothing_unclear() -> None:
    assert choose([BROKEN, VENDOR], NOBODY).name == "openai"
    with pytest.raises(ConfigError, match="ollama, openai") as caught:
        choose([SERVER, VENDOR], NOBODY)
    assert "--upstream" in caught.value.hint


@pytest.mark.parametrize("asker", [NOBODY, YesAsker()])
def test_without_anything_usable_there_is_no_choice(asker: object) -> None:
    with pytest.raises(ConfigError, match="no upstream that could be used"):
        choose([BROKEN], cast("Asker", asker))


def test_an_option_names_one_without_a_question() -> None:
    assert choose([SERVER], NOBODY, "demo").name == "demo"
    assert choose([SERVER], NOBODY, "ollama") is SERVER
    with pytest.raises(ConfigError, match="Unknown upstream"):
        choose([SERVER], NOBODY, "nonsense")


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
