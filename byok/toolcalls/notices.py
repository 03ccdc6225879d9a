"""Sentences for the user about tool calls that were not passed on."""

from collections.abc import Iterable

from byok.events import Notice

_LONGEST_NAME = 64


def incomplete_notice(names: Iterable[str]) -> Notice:
    """Return the sentence about calls that were cut; a name may be empty."""
    tools = ", ".join(dict.fromkeys(n[:_LONGEST_NAME] or "a tool" for n in names))
    return Notice(
        f"The model's call of {tools} was incomplete and was not passed on; "
        "ask it to try again.",
        "tool_call_incomplete",
    )


def cut_notice(names: Iterable[str]) -> Notice:
    """Return the sentence about calls that the output limit cut."""
    tools = ", ".join(dict.fromkeys(n[:_LONGEST_NAME] or "a tool" for n in names))
    return Notice(
        f"The model reached its output limit in its call of {tools}, so none of its "
        "calls was passed on; ask it for less at once, or raise max_tokens.",
        "tool_call_incomplete",
    )


def invalid_notice(name: str) -> Notice:
    """Return the sentence about a call whose arguments are not JSON."""
    return Notice(
        f"The model's call of {name[:_LONGEST_NAME]} was not passed on, because its "
        "arguments are not valid JSON; ask it to try again.",
        "tool_call_invalid",
    )


def too_many_notice(most: int) -> Notice:
    """Return the sentence about calls beyond the limit of one turn."""
    return Notice(
        f"The model asked for more than {most} tool calls at once; "
        "only the first ones were passed on.",
        "too_many_tool_calls",
    )
