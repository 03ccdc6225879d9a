"""The rows of `byok prompts list`."""

from typing import TYPE_CHECKING, NamedTuple

from byok.cli.prompt_situation import tools_named
from byok.escapes import escape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from byok.prompts.own_files import PromptProblem
    from byok.prompts.prompt_set import PromptSet
    from byok.prompts.template import Template

OWN, SHIPPED, REPLACED = "your own", "shipped", "shipped, not used: your own counts"


class PromptRow(NamedTuple):
    """A prompt or a broken file of the user's.

    Attributes:
        name: that of its file; of one that names no prompt escaped, with `.md`.
        told: when a model is told it, "" of what is no prompt.
        tokens: its length with every tool and condition; 0 if it is broken.
        state: whose text counts.
        problems: what is wrong with the file.
    """

    name: str
    told: str
    tokens: int
    state: str
    problems: tuple[str, ...] = ()


def prompt_rows(
    own: "Mapping[str, Template]", problems: "list[PromptProblem]"
) -> "Iterator[PromptRow]":
    """Give a row for each prompt, then the files of the user's that name none."""
    from byok.prompts.own_files import check_name
    from byok.prompts.prompt_set import END, PromptSet, shipped_prompts

    prompts = PromptSet(shipped_prompts().templates, own)
    broken: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        broken[problem.file] = (*broken.get(problem.file, ()), str(problem))
    wrong = {file.removesuffix(END): told for file, told in broken.items()}
    wrong = {name: told for name, told in wrong.items() if check_name(name) is None}
    for name in sorted({*prompts.templates, *own, *wrong}):
        if name in wrong:
            yield PromptRow(name, _when(name), 0, OWN, wrong[name])
        else:
            yield _row(prompts, name)
    for file, told in broken.items():
        if file.removesuffix(END) not in wrong:
            yield PromptRow(escape(file), "", 0, OWN, told)


def _row(prompts: "PromptSet", name: str) -> PromptRow:
    from byok.prompts.kinds import KINDS
    from byok.prompts.prompt_set import PromptSet, Situation, count_tokens

    kind, _, variant = name.partition(".")
    if name in prompts.own:
        of_file = PromptSet(prompts.templates, {name: prompts.own[name]})
        state = OWN
    else:
        of_file = PromptSet(prompts.templates)
        state = REPLACED if kind in prompts.own else SHIPPED
    situation = Situation(
        (variant,) if variant else (),
        tools=tools_named(of_file, kind),
        conditions=KINDS[kind].conditions,
    )
    text = of_file.render(kind, situation).text
    return PromptRow(name, _when(name), count_tokens(text) if text else 0, state)


def _when(name: str) -> str:
    from byok.prompts.kinds import KINDS, VARIANTS

    kind, _, variant = name.partition(".")
    if not variant:
        return KINDS[kind].about
    return f"{KINDS[kind].about}, for {VARIANTS[variant].partition(':')[0]}"
