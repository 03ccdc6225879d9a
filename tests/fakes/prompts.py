"""Prompts for tests: none at all, or a few of one line."""

from byok.augment.reply_job import Defaults
from byok.prompts.prompt_set import PromptSet
from byok.prompts.template import parse_template

NONE = PromptSet()
BARE = Defaults(prompts=NONE)  # what a client sends, and nothing of byok


def prompts(**texts: str) -> PromptSet:
    """Return prompts by name; two underscores stand for a dot."""
    return PromptSet(
        {name.replace("__", "."): parse_template(t) for name, t in texts.items()}
    )
