"""What is said of the user's own prompts: file, line, problem and cure."""

import pytest

from byok.core.prompts.own_files import check_name, read_prompt
from byok.core.prompts.prompt_set import KINDS, VARIANTS
from byok.core.prompts.template import Template


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("agnt", "agnt.md: no prompt has this name. Did you mean agent?"),
        (
            "agent.tiny",
            "agent.tiny.md: there is no such variant. Known are: agent.short, ",
        ),
        (
            "agnt.small",
            "agnt.small.md: no prompt has this name. Did you mean agent.small?",
        ),
        ("agnt.x", "agnt.x.md: no prompt has this name. Did you mean agent?"),
        ("small", "small.md: this is a variant. Say of which prompt: agent.small, "),
        (
            "agent.smal",
            "agent.smal.md: there is no such variant. Did you mean agent.small?",
        ),
        ("zzz", "zzz.md: no prompt has this name. Known are: agent, ask, "),
    ],
)
def test_an_unknown_name_is_told_with_the_likely_one(name: str, said: str) -> None:
    problem = check_name(name)
    assert str(problem).startswith(said)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("agent", "A\n{{toolz}}", "agent.md:2: {{toolz}} is no slot. Known are: "
         "shipped."),
        ("agent", "{{#paralel}}x{{/}}", "agent.md:1: paralel is no condition. Did you "
         "mean parallel?"),
        ("title", "{{#tool:view}}x{{/}}", "title.md:1: tool:view is no condition. "
         "Known are: family:claude, "),
        ("completion", "{{Mark}}", "completion.md:1: 'Mark' is no name. Names are "
         "lower case, as in {{rules}} or {{#tool:view}}. For two braces write { {."),
        ("chat", "\n\n{{#snippets}}", "chat.md:3: snippets is not closed. Add {{/}} "
         "behind its last line."),
    ],
)  # fmt: skip
def test_a_wrong_prompt_is_told_with_its_line_and_a_cure(
    name: str, text: str, said: str
) -> None:
    problems = read_prompt(name, text)
    assert isinstance(problems, list)
    assert [str(problem)[: len(said)] for problem in problems] == [said]


def test_every_prompt_may_add_to_the_shipped_one() -> None:
    for kind in KINDS:
        for variant in ("", *VARIANTS):
            name = f"{kind}.{variant}".rstrip(".")
            assert isinstance(read_prompt(name, "{{shipped}}\nMore."), Template)
