"""The prompts that come with byok."""

from byok.core.prompts.prompt_set import Situation, shipped_prompts, shipped_texts


def test_every_shipped_prompt_says_something() -> None:
    for name in shipped_texts():
        kind, _, variant = name.partition(".")
        said = shipped_prompts().render(kind, Situation((variant,)))
        assert said.text.endswith((".", "```", ">")), name
