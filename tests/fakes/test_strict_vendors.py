"""The fakes of vendors: they refuse what was refused, and take what byok sends."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from byok.core.chat import (
    ChatRequest,
    Message,
    Role,
    Sampling,
    TextPart,
    ToolDefinition,
)
from byok.core.errors import RefusalKind
from byok.core.wire.json_body import parse_json
from byok.dialects.base import Target, write_request
from byok.dialects.error_bodies import refusal_of
from byok.dialects.families import family_facts
from byok.dialects.openai_chat.dialect import OpenAIChat
from tests.fakes.histories import histories
from tests.fakes.replay import bytes_of, recorded
from tests.fakes.sdk_types import sdk_type
from tests.fakes.strict_vendors import VENDORS, refusals_of

PRESETS = {
    "any": "openai_compatible",
    "kimi-elsewhere": "vllm",
    "deepseek-r1": "openai_compatible",
    "qwen-elsewhere": "vllm",
    "thinker": "openai_compatible",
    "openrouter-gemini": "openrouter",
    "openrouter-claude": "openrouter",
}
SDK = (
    "openai.types.chat.completion_create_params",
    "CompletionCreateParamsStreaming",
)
TOOL = ToolDefinition("view", "", {"type": "object", "properties": {}})
# The rows that a recorded provider is judged by; others are judged as OpenAI's own.
ROWS = {
    "deepseek": "deepseek",
    "openrouter": "openrouter-claude",
    "vercel-gateway": "openrouter-claude",
    "mistral": "mistral",
    "groq": "groq",
    "zai": "zai",
}


@pytest.mark.slow
@settings(max_examples=70)
@given(histories())
def test_vendors_take_random_conversations_as_they_are_sent_to_them(
    messages: tuple[Message, ...],
) -> None:
    system = Message(Role.SYSTEM, (TextPart("Be brief."),))
    chat = ChatRequest(
        (system, *messages), (TOOL,), sampling=Sampling(effort="low"), agent=True
    )
    for vendor, rules in VENDORS.items():
        dialect = OpenAIChat.of(PRESETS.get(vendor, vendor))
        target = Target(rules.model, facts=family_facts(rules.model))
        body = write_request(dialect, chat, target)[1].body
        assert [*refused(vendor, body)] == []
        sdk_type(*SDK).validate_python(body)


def refused(vendor: str, body: dict[str, Any]) -> Iterator[str]:
    """Yield what a vendor refuses and no remedy changes."""
    for reason in refusals_of(vendor, body):
        if not reason.startswith("Unsupported parameter"):
            yield reason


def test_recorded_requests_that_were_refused_break_a_rule(shared: Path) -> None:
    judged = 0
    for item in recorded(shared, "error"):
        body = item["request"]
        is_chat = str(item["endpoint"]).endswith("chat/completions")
        if item["status"] != 400 or not is_chat or not body:
            continue
        kind = refusal_of(parse_json(bytes_of(shared, item)), 400).kind
        if kind in (RefusalKind.NOT_FOUND, RefusalKind.CONTEXT_LENGTH):
            continue  # no judge knows the models and windows of an account
        row = ROWS.get(item["provider"], "any")
        reasons = [r for r in refusals_of(row, body) if r != "stream is not true"]
        assert reasons, item["id"]
        judged += 1
    assert judged > 5
