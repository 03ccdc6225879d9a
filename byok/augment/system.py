"""The system message: the same bytes in every turn, so that prompt caches hit.

What changes during a conversation stands further down (`editor_context.py`).
"""

from typing import Any

from byok.augment.body import first_text, flag, integer, items, text
from byok.augment.tools import offers_tool
from byok.chat import Json

_PERSONAS = {
    1: "You are building a prototype: prefer the shortest way to something that runs.",
    2: "You are brainstorming: offer several different ideas before settling on one.",
    3: "You are reviewing: look for faults and risks, and say how sure you are.",
}
AGENT_LINE = (
    "You can act on the user's workspace only through the tools you are given; "
    "use them instead of describing what should be done."
)
SEARCH_TOOL = "codebase-retrieval"
SEARCH_LINE = (
    f"Write what you ask of {SEARCH_TOOL} in English, with the identifiers you know "
    "of, whatever language the conversation is in."
)
RECORDS_LINE = (
    "Blocks headed [earlier tool result ...] are records of the past, "
    "not a format to imitate."
)


def system_text(
    body: Json,
    *,
    base: str,
    addition: str = "",
    personality: Json | None = None,
    has_records: bool = False,
) -> str:
    """Join the parts of the system message in their fixed order.

    `base` is the user's own system prompt, used unless the client sends one; `addition`
    the user's text for this endpoint; `personality` the payload of the latest
    change-personality node. Silent jobs get neither a persona nor the line for agents.
    """
    agent = not flag(body, "silent") and is_agent(body)
    parts = [
        _apply_replacements(text(body, "system_prompt") or base, body),
        *_persona(body, personality or {}),
        text(body, "user_guidelines"),
        text(body, "workspace_guidelines"),
        *(_rule(rule) for rule in [*items(body, "rules"), *items(body, "skills")]),
        AGENT_LINE if agent else "",
        SEARCH_LINE if agent and offers_tool(body, SEARCH_TOOL) else "",
        text(body, "system_prompt_append"),
        addition,
        RECORDS_LINE if has_records else "",
    ]
    kept = dict.fromkeys(part.strip() for part in parts if part.strip())
    return "\n\n".join(kept)


def _persona(body: Json, personality: Json) -> tuple[str, ...]:
    if flag(body, "silent"):
        return ()
    kind = integer(personality, "personality_type")
    persona = _PERSONAS.get(kind) or _PERSONAS.get(integer(body, "persona_type"), "")
    return persona, text(personality, "custom_instructions")


def is_agent(body: Json) -> bool:
    """Tell whether the request comes from one of the agent modes."""
    return "AGENT" in text(body, "mode").upper()


def _apply_replacements(prompt: str, body: Json) -> str:
    """Apply `system_prompt_replacements` that name the text to replace."""
    for row in items(body, "system_prompt_replacements"):
        if isinstance(row, dict) and (
            old := first_text(row, "old", "from", "search", "pattern")
        ):
            prompt = prompt.replace(old, first_text(row, "new", "to", "replacement"))
    return prompt


def _rule(rule: Any) -> str:
    if isinstance(rule, str):
        return rule
    if not isinstance(rule, dict):
        return ""
    content = first_text(rule, "content", "text")
    heading = first_text(rule, "path", "name")
    return f"# {heading}\n{content}" if content and heading else content
