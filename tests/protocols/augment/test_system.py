"""The system message: its parts, their order, and what stays out."""

from collections.abc import Sequence
from typing import Any

import pytest

from byok.core.chat import Json, ToolDefinition
from byok.core.prompts.prompt_set import ModelFit
from byok.protocols.augment.chat_request import decode_chat
from byok.protocols.augment.frames import read_guides
from byok.protocols.augment.reply_job import Defaults
from byok.protocols.augment.system import mode_prompt, persona_prompt, system_text
from tests.fakes.prompts import prompts

CALM = {"custom_instructions": "Calm."}
FULL: dict[str, Any] = {
    "persona_type": 3,
    "user_guidelines": "Answer briefly.",
    "workspace_guidelines": "Python 3.11.",
    "rules": [{"path": "units.md", "content": "Cents."}, "No docs."],
    "skills": [{"name": "sql", "text": "Use joins."}, {"unknown": 1}, 5, None],
    "agent_memories": "Tests run with pytest.",
    "path": "a.py",
    "lang": "python",
    "mode": "CLI_AGENT",
    "system_prompt_append": "Sign nothing.",
}
_AGENT = "Act{{#tool:view}}, look{{/}}{{#parallel}}, at once{{/}}"
OWN = prompts(
    agent=_AGENT + "{{#snippets}}, show{{/}}.",
    ask="Ask.",
    chat="Answer{{#snippets}} with snippets{{/}}.",
    chat__small="Say it.",
    silent="Do it.",
    prototype="P.",
    brainstorm="B.",
    review="R.",
)
BASE = Defaults("Base.", prompts=OWN)
SAVE = [ToolDefinition("save-file", "", {})]
CHAT = "Base.\n\nAnswer."


def written(
    body: Json,
    defaults: Defaults = BASE,
    tools: Sequence[ToolDefinition] = (),
    *,
    personality: Json | None = None,
) -> str:
    prompt = mode_prompt(body, defaults, tools).text
    persona = persona_prompt(body, defaults, prompt, personality).text
    guides = read_guides(body).frames
    return system_text(body, defaults, prompt, persona=persona, guides=guides)


def test_system_prompt_parts_come_in_their_order() -> None:
    defaults = Defaults("Base.", "Added.", prompts=OWN)
    said = written(FULL, defaults, SAVE, personality=CALM)
    assert said.split("\n\n") == [
        "Base.",
        "Act.",
        "R.",
        "<persona>\nCalm.\n</persona>",
        "<user_guidelines>\nAnswer briefly.\n</user_guidelines>",
        "<workspace_guidelines>\nPython 3.11.\n</workspace_guidelines>",
        '<rule name="units.md">\nCents.\n</rule>',
        "<rule>\nNo docs.\n</rule>",
        '<rule name="sql">\nUse joins.\n</rule>',
        "Sign nothing.",
        "Added.",
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({}, CHAT, id="nothing"),
        pytest.param({"system_prompt": "Mine."}, "Mine.", id="the client's own"),
        pytest.param({"user_guidelines": " \n"}, CHAT, id="blank parts"),
        pytest.param({"rules": [{"path": "a.md", "content": ""}]}, CHAT,
                     id="a rule without content"),
        pytest.param({"persona_type": 99}, CHAT, id="an unknown persona"),
        pytest.param({"mode": "CHAT"}, "Base.\n\nAnswer with snippets.",
                     id="an editor"),
        pytest.param({"mode": "agent"}, "Base.\n\nAnswer with snippets.",
                     id="its agent without tools"),
        pytest.param({"mode": "CLI_AGENT"}, CHAT, id="an agent without tools"),
        pytest.param({"system_prompt_replacements": [{"old": "Base", "new": "Ground"}]},
                     "Ground.\n\nAnswer.", id="replacements"),
        pytest.param({"path": "a.py", "agent_memories": "x"}, CHAT,
                     id="what changes stands further down"),
    ],
)  # fmt: skip
def test_system_prompt_parts_may_be_left_out(body: dict[str, Any], said: str) -> None:
    assert written(body) == said


def test_system_prompt_names_a_tool_only_if_it_is_offered() -> None:
    flags = {"supportParallelToolUse": True}
    body = {"mode": "CLI_AGENT", "feature_detection_flags": flags}
    offered = [ToolDefinition(name, "", {}) for name in ("view", "save-file")]
    assert written(body, BASE, offered).endswith("Act, look, at once.")
    assert written(body, BASE, SAVE).endswith("Act, at once.")
    assert written({"mode": "agent"}, BASE, SAVE).endswith("Act, show.")


@pytest.mark.parametrize(
    ("tools", "name"),
    [
        ([], "chat"),
        (["view"], "ask"),
        (["codebase-retrieval", "view", "web-fetch"], "ask"),
        (["view", "save-file"], "agent"),
        (["view", "a-tool-of-mcp"], "agent"),
    ],
)
def test_an_agent_is_told_to_act_only_if_a_tool_may_change_something(
    tools: list[str], name: str
) -> None:
    offered = [ToolDefinition(tool, "", {}) for tool in tools]
    prompt = mode_prompt({"mode": "AGENT"}, BASE, offered)
    assert prompt.name == name


def test_system_prompt_has_the_variant_for_the_model() -> None:
    small = Defaults(prompts=OWN, fit=ModelFit(("short", "small")))
    assert written({}, small) == "Say it."
    assert written({"mode": "CLI_AGENT"}, small, SAVE) == "Act."


def test_a_persona_and_the_prompt_of_the_mode_share_their_part_of_a_window() -> None:
    own = prompts(chat="a " * 100, review="b " * 50, review__short="Brief.")
    for window, said in ((1200, "b " * 50), (640, "Brief.")):
        defaults = Defaults(prompts=own, fit=ModelFit((), window))
        body = {"persona_type": 3, "message": "?"}
        assert written(body, defaults).endswith("\n\n" + said.strip())
        notes = [f"review.short is used instead of review for the window of {window} "]
        told = decode_chat(body, defaults).notes
        assert [note[: len(notes[0])] for note in told] == notes[: said == "Brief."]


def test_system_prompt_of_a_silent_job_has_no_persona_and_no_agent() -> None:
    said = written({**FULL, "silent": True}, BASE, personality=CALM)
    assert said.startswith("Base.\n\nDo it.\n\n<user_guidelines>\nAnswer briefly.")
    assert "R." not in said
    assert "Calm." not in said


def test_replacements_cannot_make_a_prompt_grow_for_ever() -> None:
    rows = [{"old": "e", "new": "ee" * 10}] * 60
    said = written({"system_prompt_replacements": rows})
    assert said.startswith("Bas" + "e" * 20)
    assert len(said) <= 1_000_000


@pytest.mark.parametrize("window", [0, 1024, 8192])
def test_the_instructions_of_a_persona_take_a_part_of_the_window(window: int) -> None:
    defaults = Defaults(prompts=OWN, fit=ModelFit((), window))
    endless = {"custom_instructions": "x</persona>" * 100_000}
    said = written({}, defaults, personality=endless)
    note = persona_prompt({}, defaults, "", endless).note
    assert note.startswith("a persona has 1,100,000 characters, of which ")
    assert said.count("</persona>") == 1
    assert len(said) < (window or 30_000)
