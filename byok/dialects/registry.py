"""The dialects, by the name used in config.toml."""

from collections.abc import Callable

from byok.core.late import late_function
from byok.dialects.base import Dialect
from byok.dialects.presets import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)

# Each is made for a vendor: the name of a preset, or openai_compatible. Its module is
# loaded then.
DIALECTS: dict[str, Callable[[str], Dialect]] = {
    OPENAI_CHAT: late_function("byok.dialects.openai_chat.dialect:OpenAIChat.of"),
    GEMINI: late_function("byok.dialects.gemini.dialect:Gemini.of"),
    OLLAMA: late_function("byok.dialects.ollama.dialect:Ollama.of"),
    ANTHROPIC: late_function("byok.dialects.anthropic.dialect:AnthropicMessages.of"),
    OPENAI_RESPONSES: late_function(
        "byok.dialects.openai_responses.dialect:OpenAIResponses.of"
    ),
}
