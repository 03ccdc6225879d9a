"""Upstream wire protocols, by the name used in config.toml."""

from byok.dialects.base import Dialect
from byok.dialects.openai_chat.dialect import OpenAIChat

DIALECTS: dict[str, Dialect] = {"openai_chat": OpenAIChat()}
