"""byok memory: show, list and forget remembered conversations."""

from typing import Annotated, Any

import typer

from byok.cli.command_context import JsonOption
from byok.cli.daemon_client import ask_daemon
from byok.cli.terminal import (
    YesOption,
    confirm,
    count_noun,
    say,
    say_answer,
    say_json,
    say_table,
    tell,
)
from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.core.platform.installation import quote
from byok.core.platform.paths import find_paths
from byok.core.redact import Redactor

_MAX_QUESTION_CHARS = 60
commands = typer.Typer(no_args_is_help=True)


@commands.command("status")
def show_status(json: JsonOption = False) -> None:
    """Show whether conversations are remembered, how many, and since when."""
    say_answer(_ask({"list": 0}), _show_status, json=json)


def _show_status(answer: Json) -> None:
    say(
        "Conversations are remembered."
        if answer["on"]
        else "Conversations are not remembered."
    )
    _say_size(answer)
    if not answer["on"]:
        tell("To remember them: on = true under [memory] in the settings.")


@commands.command("list")
def list_conversations(
    number: Annotated[int, typer.Option("-n", min=1, help="How many at most.")] = 20,
    json: JsonOption = False,
) -> None:
    """List the conversations that are remembered, the newest first."""
    conversations = _ask({"list": number})["latest"]
    if json:
        say_json(conversations)
    elif conversations:
        columns = ("id", "since", "turns", "folders", "first question")
        say_table(*columns, rows=map(_row, conversations), right=("turns",))
    else:
        tell("byok: no conversations are remembered. byok memory status tells more.")


@commands.command("forget")
def forget(
    conversation: Annotated[
        str, typer.Option(metavar="ID", help="One conversation, by its id in the list.")
    ] = "",
    days: Annotated[
        int | None, typer.Option(min=0, help="What is older than so many days.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All conversations, and the file.")
    ] = False,
    yes: YesOption = False,
) -> None:
    """Delete conversations from the memory, for good; the daemon need not run."""
    selection: Any = "all"
    what, option = "all conversations", "--all"
    if conversation:
        what, selection = f"conversation {conversation}", {"conversation": conversation}
        option = f"--conversation {quote(conversation)}"
    elif days is not None:
        what, selection = f"what is older than {days} days", {"days": days}
        option = f"--days {days}"
    if bool(conversation) + (days is not None) + everything != 1:
        raise ConfigError(
            "Say what to forget.", hint="One of --conversation ID, --days N and --all."
        )
    confirm(f"Forget {what}?", f"byok memory forget {option}", yes=yes)
    answer = _ask({"forget": selection, "list": 0})
    say(f"Forgot {count_noun(answer['forgotten'], 'turn')}.")
    _say_size(answer)


def _ask(body: dict[str, Any]) -> Json:
    """Ask the daemon, or read the file if none runs."""
    if (answer := ask_daemon("memory", body)) is not None:
        return answer
    from time import time

    from byok.cli.command_context import load
    from byok.features.memory.keeper import MemoryKeeper
    from byok.features.settings import MemorySettings

    settings, paths = load()
    keeper = MemoryKeeper(paths.memory, Redactor(), time)
    try:
        return {"on": settings.section(MemorySettings).on, **keeper.answer(body)}
    finally:
        keeper.close()


def _say_size(answer: Json) -> None:
    if not answer["turns"]:
        say("Nothing is kept.")
        return
    from byok.features.memory.turns import day_of

    conversations = count_noun(answer["conversations"], "conversation")
    turns = count_noun(answer["turns"], "turn")
    since, size = day_of(answer["since"]), answer["bytes"] / 1e6
    path = find_paths().memory
    say(f"{conversations} with {turns} since {since}, {size:,.1f} MB: {path}")


def _row(conversation: Json) -> tuple[str, ...]:
    from byok.features.memory.turns import day_of

    question = " ".join(conversation["question"].split())
    if len(question) > _MAX_QUESTION_CHARS:
        question = f"{question[:_MAX_QUESTION_CHARS]}…"
    return (
        conversation["name"],
        day_of(conversation["began"]),
        str(conversation["turns"]),
        conversation["folders"].replace("\n", " "),
        question,
    )
