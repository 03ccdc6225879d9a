"""Which prompt is meant, and the situation for which it is shown."""

import pytest

from byok.cli.prompt_situation import (
    check_conditions,
    situation_of,
    split_name,
    tools_named,
)
from byok.errors import BadRequest, ConfigError
from byok.platform.paths import find_paths
from byok.prompts.prompt_set import PromptSet, Situation
from tests.fakes.prompts import prompts

SETTINGS = """
[upstreams.box]
base_url = "http://127.0.0.1:9/v1"
[upstreams.box.facts."my/model"]
family = "glm"
window = 4096
[routing.aliases]
mine = "byok:box:my/model"
"""


@pytest.mark.parametrize(
    ("model", "variants"),
    [
        ("", ()),
        ("qwen3:8b", ("small", "qwen")),
        ("meta-llama/Llama-3.1-8B-Instruct", ("small",)),
        ("openai/gpt-5", ("gpt", "reasoning")),
        ("box/my/model", ("short", "glm")),
        ("byok:box:my/model", ("short", "glm")),
        ("byok:mine", ("short", "glm")),
        ("mine", ("short", "glm")),
        ("my/model", ()),
        ("\x1b[2J", ()),
    ],
)
def test_a_model_is_found_by_its_names_without_asking(
    model: str, variants: tuple[str, ...]
) -> None:
    file = find_paths().config
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(SETTINGS)
    file.chmod(0o600)
    assert situation_of("", model, 0).variants == variants


def test_a_window_counts_before_the_one_that_is_known() -> None:
    assert situation_of("", "openai/gpt-5", 0).window > 100_000
    assert situation_of("", "openai/gpt-5", 5000) == Situation(
        ("short", "gpt", "reasoning"), 5000
    )
    assert situation_of("small", "", 5000) == Situation(("small",), 5000)


def test_an_upstream_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError):
        situation_of("", "byok:gone:m", 0)
    with pytest.raises(BadRequest):
        situation_of("small", "m", 0)


def test_names_are_split_and_checked() -> None:
    assert split_name("agent") == ("agent", "")
    assert split_name("agent.small") == ("agent", "small")
    for wrong in ("", "agents", "agent.", "agent.x", "a/b", "agent\n"):
        with pytest.raises(BadRequest):
            split_name(wrong)


def test_conditions_are_those_of_the_prompt() -> None:
    assert check_conditions("agent", ["parallel"]) == {"parallel"}
    with pytest.raises(BadRequest) as raised:
        check_conditions("chat", ["parallel", "x"])
    assert raised.value.hint == "Known are: snippets."


@pytest.mark.parametrize(
    ("kind", "condition", "hint"),
    [
        ("agent", "tool:view", "A tool is given by: --tool view"),
        ("title", "tool:view", "This prompt has none."),
        ("agent", "family:qwen", "The family is that of a model: --model MODEL"),
        ("agent", "family:x", "Known are: parallel, snippets."),
    ],
)
def test_a_condition_of_another_option_is_told_with_it(
    kind: str, condition: str, hint: str
) -> None:
    with pytest.raises(BadRequest) as raised:
        check_conditions(kind, [condition])
    assert raised.value.hint == hint


def test_the_tools_of_all_texts_of_a_prompt_are_found() -> None:
    own = prompts(agent__small="{{^tool:d|e}}x{{/}}", chat="{{#tool:f}}x{{/}}")
    shipped = prompts(agent="{{#tool:a|b}}{{#parallel}}{{#tool:c}}{{/}}{{/}}{{/}}")
    both = PromptSet(shipped.templates, own.templates)
    assert tools_named(both, "agent") == {"a", "b", "c", "d", "e"}
