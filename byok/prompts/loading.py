"""Loads the prompts in force: the shipped ones, and the user's own."""

from pathlib import Path

from byok.errors import ConfigError
from byok.prompts.checking import PromptProblem, read_prompt
from byok.prompts.own_files import read_folder
from byok.prompts.prompt_set import PromptSet
from byok.prompts.shipped import shipped_prompts
from byok.prompts.template import Template

_MOST_TOLD = 10


def load_prompts(folder: Path) -> PromptSet:
    """Return the prompts in force; a folder that is not there is empty.

    Raises:
        ConfigError: a file of the folder cannot be used; the first ones are named.
    """
    own, problems = check_folder(folder)
    if problems:
        raise broken_folder(folder, problems)
    return PromptSet(shipped_prompts().templates, own)


def broken_folder(folder: Path, problems: list[PromptProblem]) -> ConfigError:
    """Return the error that tells the first problems, a line each."""
    told = [*map(str, problems[:_MOST_TOLD])]
    if (more := len(problems) - len(told)) > 0:
        told.append(f"and {more:,} more")
    return ConfigError(
        "\n".join(told),
        hint=f"These are files of {folder}; `byok prompts check` lists them again.",
    )


def check_folder(folder: Path) -> tuple[dict[str, Template], list[PromptProblem]]:
    """Return the user's own prompts by name, and what is wrong in their folder."""
    texts, problems = read_folder(folder)
    own: dict[str, Template] = {}
    for name, text in texts.items():
        read = read_prompt(name, text)
        if isinstance(read, Template):
            own[name] = read
        else:
            problems += read
    return own, problems
