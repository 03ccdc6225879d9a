"""The system message: its parts, their order, and what stays out."""

from typing import Any

import pytest

from byok.augment.system import (
    AGENT_LINE,
    RECORDS_LINE,
    SEARCH_LINE,
    SEARCH_TOOL,
    system_text,
)

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


def test_system_prompt_parts_come_in_their_order() -> None:
    said = system_text(
        FULL,
        base="Base.",
        addition="Added.",
        personality=CALM,
        has_records=True,
    )
    parts = said.split("\n\n")
    assert parts[0] == "Base."
    assert parts[1].startswith("You are reviewing")
    assert parts[2:] == [
        "Calm.",
        "Answer briefly.",
        "Python 3.11.",
        "# units.md\nCents.",
        "No docs.",
        "# sql\nUse joins.",
        AGENT_LINE,
        "Sign nothing.",
        "Added.",
        RECORDS_LINE,
    ]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param({}, "Base.", id="nothing"),
        pytest.param({"system_prompt": "Mine."}, "Mine.", id="the client's own"),
        pytest.param({"systemPrompt": "Mine."}, "Mine.", id="camelCase"),
        pytest.param({"system_prompt": ""}, "Base.", id="an empty one"),
        pytest.param({"user_guidelines": "Base."}, "Base.", id="each part once"),
        pytest.param({"user_guidelines": " \n"}, "Base.", id="blank parts"),
        pytest.param({"rules": {"a": 1}, "skills": "x"}, "Base.", id="odd rules"),
        pytest.param({"rules": [{"path": "a.md", "content": ""}]}, "Base.",
                     id="a rule without content"),
        pytest.param({"persona_type": 0}, "Base.", id="no persona"),
        pytest.param({"persona_type": 99}, "Base.", id="an unknown persona"),
        pytest.param({"mode": "CHAT"}, "Base.", id="no agent"),
        pytest.param({"mode": "agent"}, f"Base.\n\n{AGENT_LINE}", id="an agent"),
        pytest.param({"mode": "agent", "tool_definitions": [{"name": SEARCH_TOOL}]},
                     f"Base.\n\n{AGENT_LINE}\n\n{SEARCH_LINE}", id="it may search"),
        pytest.param({"mode": "agent", "tool_definitions":
                      [{"definition": {"name": SEARCH_TOOL}}]},
                     f"Base.\n\n{AGENT_LINE}\n\n{SEARCH_LINE}", id="a nested tool"),
        pytest.param({"mode": "agent", "tool_definitions": [{"name": "view"}, 1]},
                     f"Base.\n\n{AGENT_LINE}", id="it cannot search"),
        pytest.param({"mode": "chat", "tool_definitions": [{"name": SEARCH_TOOL}]},
                     "Base.", id="a chat does not search"),
        pytest.param({"system_prompt_replacements": [{"old": "Base", "new": "Ground"}]},
                     "Ground.", id="replacements"),
        pytest.param({"system_prompt_replacements": [{"new": "x"}, "x", None, {}]},
                     "Base.", id="replacements of nothing"),
        pytest.param({"path": "a.py", "agent_memories": "x"}, "Base.",
                     id="what changes stands further down"),
    ],
)  # fmt: skip
def test_system_prompt_parts_may_be_left_out(body: dict[str, Any], said: str) -> None:
    assert system_text(body, base="Base.") == said


@pytest.mark.parametrize("persona", [1, 2, 3, "2"])
def test_system_prompt_has_a_sentence_for_each_persona(persona: Any) -> None:
    assert system_text({"persona_type": persona}, base="").startswith("You are ")


def test_system_prompt_of_a_silent_job_has_no_persona_and_no_agent() -> None:
    said = system_text(
        {**FULL, "silent": True},
        base="Base.",
        personality=CALM,
    )
    assert AGENT_LINE not in said
    assert "You are reviewing" not in said
    assert "Calm." not in said
    assert "Answer briefly." in said


def test_system_prompt_is_the_same_for_every_turn_of_a_conversation() -> None:
    one = {**FULL, "message": "a", "request_id": "1", "chat_history": []}
    two = {**FULL, "message": "b", "request_id": "2", "chat_history": [{}]}
    assert system_text(one, base="B") == system_text(two, base="B")
