"""Parts of the prompts that ask for one text."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from byok.core.chat import ChatRequest, Json, Message, Role, TextPart
from byok.core.escapes import truncate_middle
from byok.core.wire.json_body import write_json
from byok.protocols.augment.body import objects
from byok.protocols.augment.frames import read_guides
from byok.protocols.augment.history import read_exchange
from byok.protocols.augment.nodes import fence_code
from byok.protocols.augment.reply_job import NO_VALUES, Defaults

LOW = 0.2  # temperature: these answers must be right, not creative
_MAX_EXCHANGES = 10
_MAX_TEXT_CHARS = 2000  # of one text in the conversation
_MAX_JSON_CHARS = 8000
NOTHING = ChatRequest(())


def question(
    body: Json,
    defaults: Defaults,
    prompt: str,
    blocks: Iterable[str],
    values: Mapping[str, str] = NO_VALUES,
    conditions: Sequence[str] = (),
    *,
    whole: bool = False,
    note: str = "",
) -> ChatRequest:
    """Return a request for one text, from a task (system) and its input (user).

    `prompt` is the name of the prompt with the task, `values` fill its slots, and
    `conditions` are those that are met. `blocks` are the input. `whole`: see
    ChatRequest. `note` is added to the notes for the log.
    """
    task = defaults.render(prompt, values, conditions=conditions)
    guides = read_guides(body, defaults.fit.window)
    parts = (
        defaults.system_prompt,
        task.text,
        *guides.frames,
        defaults.addition,
    )
    system = "\n\n".join(part.strip() for part in parts if part.strip())
    task_input = "\n\n".join(block for block in blocks if block.strip())
    setting = defaults.sampling.temperature
    temperature = LOW if setting is None else min(setting, LOW)
    return ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart(system),)),
            Message(Role.USER, (TextPart(task_input),)),
        ),
        prompt=task.name,
        notes=tuple(filter(None, (note, task.note, guides.note))),
        silent=True,
        whole=whole,
        verbatim=True,
        sampling=replace(defaults.sampling, temperature=temperature),
    )


def conversation(body: Json) -> str:
    """Render the newest exchanges as text; "" without any."""
    lines: list[str] = []
    newest = objects(body, "chat_history")[-_MAX_EXCHANGES:]
    for exchange in map(read_exchange, newest):
        for speaker, words in (
            ("User", exchange.turn.words),
            ("Assistant", exchange.reply.text),
        ):
            if words.strip():
                lines.append(
                    f"{speaker}: {truncate_middle(words.strip(), _MAX_TEXT_CHARS)}"
                )
    return "\n".join(["[conversation so far]", *lines]) if lines else ""


def code(label: str, text: str, language: str = "") -> str:
    """Render code under a label; empty code is marked as empty."""
    if not text:
        return f"[{label}: empty]"
    return f"[{label}]\n{fence_code(text, language)}"


def as_json(label: str, value: Any) -> str:
    """Render a value of unknown shape as JSON; "" for an empty one."""
    if not value:
        return ""
    raw = write_json(value).decode("utf-8", "replace")
    return f"[{label}]\n{truncate_middle(raw, _MAX_JSON_CHARS)}"
