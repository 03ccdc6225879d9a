"""Prompts for tests: all empty, or a few of one line."""

from byok.core.prompts.prompt_set import KINDS, PromptSet
from byok.core.prompts.template import parse_template
from byok.protocols.augment.reply_job import Defaults

NONE = PromptSet({name: parse_template("") for name in KINDS})
BARE = Defaults(prompts=NONE)  # what a client sends, and nothing of byok


def prompts(**texts: str) -> PromptSet:
    """Return prompts by name; two underscores stand for a dot."""
    return PromptSet(
        {name.replace("__", "."): parse_template(t) for name, t in texts.items()}
    )
