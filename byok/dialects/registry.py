"""The dialects, by the name used in config.toml."""

from collections.abc import Callable

from byok.dialects.anthropic.dialect import AnthropicMessages
from byok.dialects.base import Dialect
from byok.dialects.gemini.dialect import Gemini
from byok.dialects.ollama.dialect import Ollama
from byok.dialects.openai_chat.dialect import OpenAIChat
from byok.dialects.openai_responses.dialect import OpenAIResponses
from byok.dialects.presets import (
    ANTHROPIC,
    GEMINI,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)

# Each is made for a vendor: the name of a preset, or openai_compatible.
DIALECTS: dict[str, Callable[[str], Dialect]] = {
    OPENAI_CHAT: OpenAIChat.of,
    GEMINI: Gemini.of,
    OLLAMA: Ollama.of,
    ANTHROPIC: AnthropicMessages.of,
    OPENAI_RESPONSES: OpenAIResponses.of,
}
