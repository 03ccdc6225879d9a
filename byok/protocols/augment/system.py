"""The system message: the same bytes in every turn, so that prompt caches hit.

What changes during a conversation stands further down (`editor_context.py`).
"""

from collections.abc import Sequence

from byok.core.chat import Json, ToolDefinition
from byok.core.prompts.prompt_set import Prompt
from byok.protocols.augment.body import first_text, flag, integer, items, mapping, text
from byok.protocols.augment.frames import fit, room_of
from byok.protocols.augment.reply_job import Defaults

# Tools of the clients that change no file. Where an agent has only these, it answers.
_READERS = frozenset(
    {
        *("codebase-retrieval", "git-commit-retrieval", "view"),
        *("view-range-untruncated", "search-untruncated", "diagnostics"),
        *("read-terminal", "read-process", "list-processes", "view_tasklist"),
        *("web-search", "web-fetch", "open-browser", "render-mermaid"),
        *("add_tasks", "update_tasks", "reorganize_tasklist", "remember"),
    }
)
_PERSONAS = {1: "prototype", 2: "brainstorm", 3: "review"}
# Clients that show code of the workspace in a frame of their own, by their modes.
_SHOWING_SNIPPETS = ("CHAT", "AGENT")
_PERSONA = 4  # part of the room for guidelines and rules
_LONGEST = 1_000_000  # characters


def system_text(
    body: Json,
    defaults: Defaults,
    prompt: str,
    *,
    persona: str,
    guides: Sequence[str],
) -> str:
    """Join the parts of the system message of a chat in their fixed order.

    The user's own system prompt and the `prompt` of the mode are used unless the client
    sends one; `guides` are those of `frames.py`.
    """
    base = text(body, "system_prompt") or _join(defaults.system_prompt, prompt)
    return _join(
        _apply_replacements(base, body),
        persona,
        *guides,
        text(body, "system_prompt_append"),
        defaults.addition,
    )


def _join(*parts: str) -> str:
    """Put blank lines between the parts; each counts once."""
    kept = dict.fromkeys(map(str.strip, parts))
    return "\n\n".join(filter(None, kept))


def mode_prompt(
    body: Json, defaults: Defaults, tools: Sequence[ToolDefinition]
) -> Prompt:
    """Return the prompt for the mode of a chat; none if the client sends its own."""
    if text(body, "system_prompt"):
        return Prompt()
    if flag(body, "silent"):
        return defaults.render("silent")
    flags = mapping(body, "feature_detection_flags")
    conditions = [
        *(["parallel"] if flag(flags, "support_parallel_tool_use") else []),
        *(["snippets"] if text(body, "mode").upper() in _SHOWING_SNIPPETS else []),
    ]
    names = [tool.name for tool in tools]
    name = "chat"  # also of an agent without tools: the AI SDK sends each text as one
    if is_agent(body) and names:
        name = "ask" if only_reads(tools) else "agent"
    return defaults.render(name, tools=names, conditions=conditions)


def persona_prompt(
    body: Json, defaults: Defaults, beside: str, personality: Json | None
) -> Prompt:
    """Return the prompt of the persona, none for a silent job.

    It stands `beside` the prompt of the mode; `personality` is the payload of the
    latest change-personality node.
    """
    if flag(body, "silent"):
        return Prompt()
    chosen = personality or {}
    kind = integer(chosen, "personality_type")
    if kind not in _PERSONAS:
        kind = integer(body, "persona_type")
    name = _PERSONAS.get(kind)
    instructions = text(chosen, "custom_instructions").strip()
    if not name and not instructions:
        return Prompt()
    prompt = defaults.render(name, beside=beside) if name else Prompt()
    longest = room_of(defaults.fit.window) // _PERSONA
    own, cut = fit("persona", instructions, longest, "a persona has")
    return Prompt(_join(prompt.text, own), prompt.name, prompt.note or cut)


def only_reads(tools: Sequence[ToolDefinition]) -> bool:
    """Tell whether there are tools, and all are known to change no file."""
    return bool(tools) and all(tool.name in _READERS for tool in tools)


def is_agent(body: Json) -> bool:
    """Tell whether the request comes from one of the agent modes."""
    return "AGENT" in text(body, "mode").upper()


def _apply_replacements(prompt: str, body: Json) -> str:
    """Apply `system_prompt_replacements` that name the text to replace."""
    for row in items(body, "system_prompt_replacements"):
        if isinstance(row, dict) and (
            old := first_text(row, "old", "from", "search", "pattern")
        ):
            new = first_text(row, "new", "to", "replacement")
            growth = prompt.count(old) * (len(new) - len(old))
            if len(prompt) + growth <= _LONGEST:  # rows could double it again and again
                prompt = prompt.replace(old, new)
    return prompt
