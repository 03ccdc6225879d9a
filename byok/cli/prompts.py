"""byok prompts: show the prompts, and edit the user's own texts that replace them."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from msgspec.structs import replace

from byok.cli.command_context import JsonOption, load
from byok.cli.completion import complete_model, complete_prompt
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import count_noun, say, say_json, say_table, say_text, tell
from byok.core.errors import BadRequest, ByokError, ConfigError
from byok.core.escapes import escape
from byok.core.language import translate
from byok.core.platform.paths import find_paths
from byok.core.platform.programs import find_program
from byok.core.prompts.own_files import (
    PromptProblem,
    check_folder,
    check_name,
    load_prompts,
    read_folder,
)
from byok.core.prompts.prompt_set import (
    END,
    FAMILIES,
    FAMILY,
    KINDS,
    TOOL,
    VARIANTS,
    PromptKind,
    PromptSet,
    Situation,
    count_tokens,
    find_fit,
    named_tools,
    shipped_prompts,
    shipped_texts,
)
from byok.core.prompts.template import Template
from byok.core.routing import Service

if TYPE_CHECKING:
    from byok.dialects.model_facts import ModelFacts


VARIABLES = ("VISUAL", "EDITOR")
_DEFAULTS = {
    "win32": ("notepad",),
    "darwin": ("nano", "vim", "vi"),
    "linux": ("editor", "nano", "vim", "vi"),  # `editor` is the user's choice on Debian
}
_CURE = "Set VISUAL or EDITOR to your editor, such as: export VISUAL='code --wait'"
EXIT_BROKEN = 78  # the exit code of settings that cannot be used, too
_NEW_TEXT = "{{shipped}}\n\n"
OWN, SHIPPED, REPLACED = "your own", "shipped", "shipped, not used: your own counts"
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
    typer.Option(
        "--model",
        help="As for this model.",
        metavar="MODEL",
        autocompletion=complete_model,
    ),
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
NameArgument = Annotated[
    str,
    typer.Argument(
        help="A prompt, or a variant of one, such as agent.small.",
        metavar="NAME",
        autocompletion=complete_prompt,
    ),
]
commands = typer.Typer(no_args_is_help=True)


@commands.command("list")
def list_prompts(json: JsonOption = False) -> None:
    """List the prompts, and which of them are your own.

    The tokens are those of the whole text, with all tools offered.
    """
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
                translate("your own, broken" if row.problems else row.state),
            )
            for row in rows
        ),
    )
    tell(f"Your own prompts are files of {folder}.")
    if any(row.problems for row in rows):
        tell("What is broken, and what to do: byok prompts check")


class PromptRow(NamedTuple):
    """A prompt, or a broken file of the user's.

    Attributes:
        name: that of its file; if that names no prompt, escaped and with `.md`.
        told: which requests the prompt is for; "" for a file that is no prompt.
        tokens: its length with every tool and condition; 0 if it is broken.
        state: whose text is used.
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
    """Yield a row for each prompt, then for the user's files that name no prompt."""
    prompts = PromptSet(shipped_prompts().templates, own)
    by_file: dict[str, tuple[str, ...]] = {}
    for problem in problems:
        by_file[problem.file] = (*by_file.get(problem.file, ()), str(problem))
    by_name = {file.removesuffix(END): texts for file, texts in by_file.items()}
    broken = {
        name: texts for name, texts in by_name.items() if check_name(name) is None
    }
    for name in sorted({*prompts.templates, *own, *broken}):
        if name in broken:
            yield PromptRow(name, _purpose(name), 0, OWN, broken[name])
        else:
            yield _row(prompts, name)
    for file, texts in by_file.items():
        if file.removesuffix(END) not in broken:
            yield PromptRow(escape(file), "", 0, OWN, texts)


def _row(prompts: PromptSet, name: str) -> PromptRow:
    kind, _, variant = name.partition(".")
    own = {name: prompts.own[name]} if name in prompts.own else {}
    prompt_set = PromptSet(prompts.templates, own)
    state = OWN if own else REPLACED if kind in prompts.own else SHIPPED
    situation = Situation(
        (variant,) if variant else (),
        tools=tools_named(prompt_set, kind),
        conditions=KINDS[kind].conditions,
    )
    text = prompt_set.render(kind, situation).text
    return PromptRow(name, _purpose(name), count_tokens(text) if text else 0, state)


def _purpose(name: str) -> str:
    kind, _, variant = name.partition(".")
    if not variant:
        return KINDS[kind].about
    return f"{KINDS[kind].about}, for {VARIANTS[variant]}"


@commands.command("show")
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
    kind, variant = split_name(name)
    if source:
        say_text(_source(name).rstrip("\n"))
        return
    prompts = load_prompts(find_paths().prompts)
    tools = {*(tool or ()), *(tools_named(prompts, kind) if all_tools else ())}
    situation = replace(
        situation_of(variant, model, window),
        tools=frozenset(tools),
        conditions=check_conditions(kind, condition or []),
    )
    prompt = prompts.render(kind, situation)
    say_text(prompt.text)
    tokens = count_noun(count_tokens(prompt.text), "token")
    tell(f"This is {prompt.name}, about {tokens}.")
    if prompt.note:
        tell(f"Note: {prompt.note}.")


@commands.command("edit")
def edit_prompt(
    name: NameArgument,
    whole: Annotated[
        bool, typer.Option("--whole", help="Start with a copy of the shipped text.")
    ] = False,
) -> None:
    """Open your own text of a prompt in the editor ($VISUAL, $EDITOR).

    A new one starts with {{shipped}}, which stands for the shipped text, so that it
    follows byok's updates. When you close the editor, the text is checked, and a
    running daemon uses it.
    """
    split_name(name)
    file = find_paths().prompts / f"{name}.md"
    _create_file(file, name, whole=whole)
    original = file.read_bytes()
    open_editor(file)
    if file.is_file() and file.read_bytes() == original:
        tell("Nothing was changed. An editor in a window of its own has to be told to")
        tell("wait, such as: export VISUAL='code --wait'")
    _apply_prompts(file.parent)


def _create_file(file: Path, name: str, *, whole: bool) -> None:
    """Create the file of a prompt if it does not exist.

    Raises:
        BadRequest: there is something of its name that is no regular file.
    """
    from byok.core.platform.paths import create_private, make_private

    make_private(file.parent)
    if not file.exists() and not file.is_symlink():
        shipped = shipped_texts().get(name) or shipped_texts()[name.partition(".")[0]]
        create_private(file, shipped if whole else _NEW_TEXT)
    target, folder = file.resolve(), file.parent.resolve()
    if not target.is_file() or not target.is_relative_to(folder):
        raise BadRequest(
            f"{file} is no plain file of that folder.",
            hint="byok prompts check says more.",
        )


def _apply_prompts(folder: Path) -> None:
    """Check the prompts in the folder, and make a running daemon load them."""
    _, problems = check_folder(folder)
    for problem in problems:
        say(str(problem))
    if problems:
        tell("Until this is mended a running daemon keeps the prompts that it has, and")
        tell("none can be started.")
        raise typer.Exit(EXIT_BROKEN)
    try:
        answer = ask_daemon(Service.RELOAD)
    except ByokError:
        tell("The prompts are valid, but the running daemon keeps those that it has:")
        raise
    if answer is None:
        tell(
            "The prompts are valid. byok is not running; it reads them when it starts."
        )
    else:
        tell("The prompts are valid. The running daemon uses them from now on.")


@commands.command("diff")
def diff(
    name: Annotated[
        str,
        typer.Argument(
            help="One prompt; by default all.",
            metavar="NAME",
            autocompletion=complete_prompt,
        ),
    ] = "",
) -> None:
    """Show how your own prompts differ from the shipped ones."""
    if name:
        split_name(name)
    own, problems = read_folder(find_paths().prompts)
    relevant = [p for p in problems if not name or p.file == f"{name}.md"]
    if not own and not relevant:
        tell("You have no prompts of your own: models are told the shipped ones.")
    elif name and name not in own and not relevant:
        tell(f"You have no {name} of your own: models are told the shipped one.")
    for each in [name] if name in own else [] if name else own:
        _say_difference(each, own[each])
    for problem in relevant:
        tell(str(problem))
    if relevant:
        raise typer.Exit(EXIT_BROKEN)


def _say_difference(name: str, own: str) -> None:
    """Print the difference; an inserted {{shipped}} counts as the shipped text."""
    import difflib

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
        say_text(line)
    if not lines:
        tell(f"{name}: your own is the shipped text.")


@commands.command("check")
def check() -> None:
    """Check your own prompts: files, names, slots, conditions.

    Each problem is a line of FILE:LINE, what is wrong, and what to do. The exit code is
    0 if there is none, else 78.
    """
    folder = find_paths().prompts
    own, problems = check_folder(folder)
    for problem in problems:
        say(str(problem))
    if problems:
        tell(f"{folder}: {count_noun(len(problems), 'problem')}")
        raise typer.Exit(EXIT_BROKEN)
    say(f"{folder}: {count_noun(len(own), 'prompt')} of your own, valid")


def _source(name: str) -> str:
    """Return the text of the file that is used for a name.

    Raises:
        BadRequest: there is none.
        ConfigError: the user's own file cannot be read.
    """
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


def split_name(name: str) -> tuple[str, str]:
    """Return the prompt and the variant of a name such as `agent.small`.

    Raises:
        BadRequest: there is no such prompt.
    """
    if (problem := check_name(name)) is not None:
        raise BadRequest(f"{name[:80]}: {problem.problem}.", hint=problem.cure)
    kind, _, variant = name.partition(".")
    return kind, variant


def tools_named(prompts: PromptSet, kind: str) -> frozenset[str]:
    """Return every tool that a prompt or one of its variants names."""
    return named_tools(
        template
        for group in (prompts.templates, prompts.own)
        for name, template in group.items()
        if name.partition(".")[0] == kind
    )


def check_conditions(kind: str, conditions: list[str]) -> frozenset[str]:
    """Return the conditions as a set.

    Raises:
        BadRequest: the prompt has no such condition.
    """
    known = KINDS[kind].conditions
    for condition in conditions:
        if condition not in known:
            listed = ", ".join(sorted(known))
            raise BadRequest(
                f"{condition[:80]} is no condition of {kind}.",
                hint=_other_option(condition, KINDS[kind])
                or (f"Known are: {listed}." if known else "This prompt has none."),
            )
    return frozenset(conditions)


def _other_option(condition: str, kind: PromptKind) -> str:
    """Return a hint at the option that sets a condition instead of --if, or ""."""
    if kind.tools and (tool := condition.removeprefix(TOOL)) != condition:
        return f"A tool is given by: --tool {tool[:80]}"
    if condition.removeprefix(FAMILY) in FAMILIES and condition.startswith(FAMILY):
        return "The family is that of a model: --model MODEL"
    return ""


def situation_of(variant: str, model: str, window: int) -> Situation:
    """Return the situation of a variant, or of a model by its facts known offline.

    The model is an id of the catalog, UPSTREAM/MODEL, or a name as it is on any host. A
    `window` of 0 stands for the model's own.

    Raises:
        BadRequest: there is a variant and a model.
        ConfigError: the model's upstream is unknown.
    """
    if variant and model:
        raise BadRequest(
            "A model decides itself which variant it is told.",
            hint=f"Leave out --model, or .{variant}.",
        )
    if variant:
        return Situation((variant,), window)
    facts = _facts_of(model)
    fit = find_fit(
        facts.id,
        family=facts.family,
        thinks=facts.thinking is True,
        window=window or facts.loaded_window or facts.window,
    )
    return Situation(*fit)


def _facts_of(name: str) -> "ModelFacts":
    """Return the known facts of a model."""
    from byok.core.routing import split_id
    from byok.dialects.model_facts import combine_facts
    from byok.settings import UpstreamSettings, upstream_named, upstream_names
    from byok.upstream.model_facts import Profiles, fact_sources
    from byok.wiring.upstreams import make_spec

    settings, paths = load()
    name = settings.routing.meant_by(name)
    upstream, _, model = name.partition("/")
    parts = split_id(name) or (upstream, model)
    if split_id(name) or (model and upstream in upstream_names(settings.upstreams)):
        section, model = upstream_named(parts[0], settings), parts[1]
    else:
        section, model = ("", UpstreamSettings()), name
    sources = fact_sources(make_spec(*section, settings), Profiles(paths.profiles))
    facts = [(source, look_up(model)) for source, look_up in sources]
    return combine_facts(model, facts).facts


def open_editor(file: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Open a file in $VISUAL, $EDITOR or a common editor; return when that has ended.

    It is started without a shell, in the file's folder: editors read settings from the
    working folder, which may be a repository.

    Raises:
        BadRequest: there is no such editor, or it failed.
    """
    command = find_editor(environ)
    # Ctrl-C is for the editor in the same terminal.
    previous_handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        ended = subprocess.run(  # noqa: S603 - the user's own program
            [*command, str(file)], cwd=file.parent, check=False
        )
    except OSError as error:
        raise BadRequest(
            f"{command[0]} cannot be started: {error.strerror}.", hint=_CURE
        ) from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if ended.returncode:
        raise BadRequest(
            f"The editor {command[0]} failed (exit code {ended.returncode}).",
            hint=f"What it saved is in {file}. Look at it with: byok prompts check",
        )


def find_editor(environ: Mapping[str, str]) -> list[str]:
    """Return the command of the editor: an absolute path, and arguments.

    Raises:
        BadRequest: no editor was found.
    """
    for variable in VARIABLES:
        if value := environ.get(variable, "").strip():
            return _resolve_command(variable, value)
    if sys.platform != "win32" and not sys.stdin.isatty():
        raise BadRequest("There is no terminal for an editor.", hint=_CURE)
    for name in _DEFAULTS.get(sys.platform, _DEFAULTS["linux"]):
        if program := find_program(name):
            return [program]
    raise BadRequest("No editor was found.", hint=_CURE)


def _resolve_command(variable: str, value: str) -> list[str]:
    """Return the command in a variable; a path must be absolute."""
    try:
        name, *arguments = shlex.split(value, posix=sys.platform != "win32")
    except ValueError as error:
        raise BadRequest(f"{variable} cannot be read: {error}.", hint=_CURE) from None
    name = os.path.expanduser(name.strip('"'))  # noqa: PTH111 - "~" alone stays a text
    if Path(name).name == name:
        program = find_program(name.removesuffix(".exe"))
    else:
        program = name if Path(name).is_absolute() and Path(name).is_file() else None
    if program is None:
        raise BadRequest(
            f"{variable} names {name[:200]}, which was not found.", hint=_CURE
        )
    return [program, *arguments]
