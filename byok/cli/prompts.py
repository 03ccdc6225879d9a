"""byok prompts: what models are told, and the user's own texts in their place."""

import re
from typing import Annotated

import typer

from byok.cli.command_context import JsonOption
from byok.cli.output import count_noun, say, say_json, say_table, say_text, tell
from byok.cli.prompt_edit import EXIT_BROKEN, edit_prompt
from byok.cli.prompt_situation import (
    NameArgument,
    check_conditions,
    situation_of,
    split_name,
    tools_named,
)
from byok.cli.prompt_trial import try_prompts
from byok.errors import BadRequest, ConfigError
from byok.platform.paths import find_paths

_SHIPPED_MARK = re.compile(r"\{\{ *shipped *\}\}")


ToolOption = Annotated[
    list[str] | None,
    typer.Option("--tool", help="As if this tool were offered.", metavar="TOOL"),
]
AllToolsOption = Annotated[
    bool, typer.Option("--all-tools", help="As if every tool were offered.")
]
ConditionOption = Annotated[
    list[str] | None,
    typer.Option("--if", help="As if this condition held.", metavar="CONDITION"),
]
ModelOption = Annotated[
    str,
    typer.Option("--model", help="As for this model.", metavar="MODEL"),
]
WindowOption = Annotated[
    int,
    typer.Option(
        "--window",
        help="As for a context window of this size.",
        metavar="TOKENS",
        min=0,
    ),
]
SourceOption = Annotated[
    bool, typer.Option("--source", help="Print the file, with its tags.")
]


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(
        help="Show byok's prompts, and replace them with your own.",
        no_args_is_help=True,
    )
    group.command(name="list")(list_prompts)
    group.command(name="show")(show)
    group.command(name="edit")(edit_prompt)
    group.command(name="diff")(diff)
    group.command(name="check")(check)
    group.command(name="try")(try_prompts)
    app.add_typer(group, name="prompts")


def list_prompts(json: JsonOption = False) -> None:
    """List the prompts, and which of them are your own.

    The tokens are those of the whole text, with all tools offered.
    """
    from byok.cli.prompt_list import prompt_rows
    from byok.prompts.own_files import check_folder

    folder = find_paths().prompts
    rows = [*prompt_rows(*check_folder(folder))]
    if json:
        say_json([{**row._asdict(), "valid": not row.problems} for row in rows])
        return
    say_table(
        *("prompt", "told in", "tokens", "text"),
        rows=(
            (
                row.name,
                row.told,
                f"{row.tokens:,}" if row.tokens else "",
                f"{row.state}, broken" if row.problems else row.state,
            )
            for row in rows
        ),
    )
    tell(f"Your own prompts are files of {folder}.")
    if any(row.problems for row in rows):
        tell("What is broken, and what to do: byok prompts check")


def show(
    name: NameArgument,
    tool: ToolOption = None,
    all_tools: AllToolsOption = False,
    condition: ConditionOption = None,
    model: ModelOption = "",
    window: WindowOption = 0,
    source: SourceOption = False,
) -> None:
    """Print a prompt as a model receives it; slots stay empty."""
    from byok.prompts.own_files import load_prompts
    from byok.prompts.prompt_set import count_tokens

    kind, variant = split_name(name)
    if source:
        say_text(_source(name).rstrip("\n"))
        return
    prompts = load_prompts(find_paths().prompts)
    tools = {*(tool or ()), *(tools_named(prompts, kind) if all_tools else ())}
    situation = situation_of(variant, model, window)._replace(
        tools=frozenset(tools), conditions=check_conditions(kind, condition or [])
    )
    prompt = prompts.render(kind, situation)
    say_text(prompt.text)
    tokens = count_noun(count_tokens(prompt.text), "token")
    tell(f"This is {prompt.name}, about {tokens}.")
    if prompt.note:
        tell(f"Note: {prompt.note}.")


def diff(
    name: Annotated[
        str, typer.Argument(help="One prompt; by default all.", metavar="NAME")
    ] = "",
) -> None:
    """Show how your own prompts differ from the shipped ones."""
    from byok.prompts.own_files import read_folder

    if name:
        split_name(name)
    own, problems = read_folder(find_paths().prompts)
    unread = [p for p in problems if not name or p.file == f"{name}.md"]
    if not own and not unread:
        tell("You have no prompts of your own: models are told the shipped ones.")
    elif name and name not in own and not unread:
        tell(f"You have no {name} of your own: models are told the shipped one.")
    for each in [name] if name in own else [] if name else own:
        _say_difference(each, own[each])
    for problem in unread:
        tell(str(problem))
    if unread:
        raise typer.Exit(EXIT_BROKEN)


def _say_difference(name: str, own: str) -> None:
    """Print what is new; where the shipped text is inserted, it is no difference."""
    import difflib

    from byok.prompts.prompt_set import shipped_texts

    texts = shipped_texts()
    base = name if name in texts else name.partition(".")[0]
    shipped = texts[base].strip("\n")
    inserted = _SHIPPED_MARK.sub(lambda _: shipped, own)
    lines = [
        *difflib.unified_diff(
            shipped.splitlines(),
            inserted.strip("\n").splitlines(),
            f"shipped/{base}.md",
            f"own/{name}.md",
            lineterm="",
        )
    ]
    for line in lines:
        say(line)
    if not lines:
        tell(f"{name}: your own is the shipped text.")


def check() -> None:
    """Check your own prompts: files, names, slots, conditions.

    Each problem is a line of FILE:LINE, what is wrong, and what to do. The exit code is
    0 if there is none, else 78.
    """
    from byok.prompts.own_files import check_folder

    folder = find_paths().prompts
    own, problems = check_folder(folder)
    for problem in problems:
        say(str(problem))
    if problems:
        tell(f"{count_noun(len(problems), 'problem')} in {folder}")
        raise typer.Exit(EXIT_BROKEN)
    say(f"{folder}: {count_noun(len(own), 'prompt')} of your own, valid")


def _source(name: str) -> str:
    """Return the text of the file that counts for a name.

    Raises:
        BadRequest: there is none.
        ConfigError: the user's own cannot be read.
    """
    from byok.prompts.own_files import read_folder
    from byok.prompts.prompt_set import shipped_texts

    own, problems = read_folder(find_paths().prompts)
    for problem in problems:
        if problem.file == f"{name}.md":
            raise ConfigError(str(problem))
    text = own.get(name, shipped_texts().get(name))
    if text is None:
        raise BadRequest(
            f"{name} has no text of its own.",
            hint=f"Make one: byok prompts edit {name}",
        )
    return text
