"""The prompts that come with byok."""

from functools import cache
from importlib import resources

from byok.prompts.prompt_set import PromptSet
from byok.prompts.template import parse_template

END = ".md"


@cache
def shipped_texts() -> dict[str, str]:
    """Return the shipped prompts by name, with their comments."""
    return {
        file.name.removesuffix(END): file.read_text("utf-8")
        for file in resources.files(__package__).iterdir()
        if file.name.endswith(END)
    }


@cache
def shipped_prompts() -> PromptSet:
    """Return the prompts without those of the user."""
    texts = shipped_texts()
    return PromptSet({name: parse_template(text) for name, text in texts.items()})
