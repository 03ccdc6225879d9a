"""byok embed: show, estimate, enable and share the vectors of your code."""

from collections.abc import Mapping

import typer

from byok.cli.code_client import ask_index, with_client
from byok.cli.command_context import ConfigOption, JsonOption
from byok.cli.daemon_client import LocalClient
from byok.cli.terminal import (
    YesOption,
    confirm,
    count_noun,
    say,
    say_answer,
    show_progress,
    tell,
)
from byok.core.chat import Json
from byok.core.routing import Service

_CENT = 0.01
OFF = "off"
_COUNTING = "counting the code that has no vectors"
# Texts for states of EmbeddingState, whose module only the daemon imports.
_STATES: Mapping[str, str] = {
    OFF: "off; name an upstream and a model under [embeddings] first",
    "no_consent": "not enabled, so nothing is sent (byok embed enable)",
    "paused": "paused (byok embed resume)",
    "standby": "waiting for the index",
    "waiting": "waiting for the model",
}
commands = typer.Typer(no_args_is_help=True)


@commands.command("status")
def status(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Show the embedding model and the number of vectors."""
    answer = ask_index(Service.EMBED_STATUS, config, hidden=json)
    say_answer(answer, show_vectors, json=json)


def show_vectors(answer: Json) -> None:
    """Print the status of the vectors."""
    say(describe_vectors(answer))
    if answer["error"]:
        say(f"error: {answer['error']}")
    if team := answer["team"]:
        say(describe_team(team))
    if answer["note"]:
        say(answer["note"])


def describe_vectors(answer: Json) -> str:
    """Return the status of the vectors as one line."""
    words = f"vectors: {_STATES.get(answer['state'], answer['state'])}"
    if answer["state"] == OFF:
        return words
    words += f"; model {answer['model']} at {answer['host']}"
    if answer["chunks"]:
        words += f", {answer['embedded']:,} of {answer['chunks']:,} chunks"
    if answer["refused"]:
        words += f", {answer['refused']:,} refused"
    if answer["dimensions"]:
        size = f"{answer['bytes'] / 1e6:,.1f} MB"
        words += f", {answer['dimensions']} dimensions, {size}"
    return words


def describe_team(team: Json) -> str:
    """Return the status of the team's index as one line."""
    words = f"team: {team['team']} at {team['url']}"
    if team["collection"]:
        words += f", collection {team['collection']}"
    words += f"; fetched {team['fetched']:,}"
    return words + (
        f", pushed {team['pushed']:,}" if team["writes"] else ", reads only"
    )


@commands.command("estimate")
def estimate(json: JsonOption = False, config: ConfigOption = None) -> None:
    """Estimate what creating all vectors would send and cost; sends nothing."""
    answer = ask_index(Service.EMBED_ESTIMATE, config, words=_COUNTING, hidden=json)
    say_answer(answer, lambda cost: say(describe_cost(cost)), json=json)


def describe_cost(answer: Json) -> str:
    """Return one sentence: what creating all vectors sends, where to, and its price."""
    where = "this machine" if answer["is_local"] else answer["host"]
    if not (answer["chunks"] or answer["confirmed"]):
        return (
            f"{answer['model']} on {where} would get your code; how much is unknown, "
            "as nothing is indexed yet (byok index add DIR)."
        )
    chunks = count_noun(answer["chunks"], "chunk")
    return (
        f"{answer['model']} on {where} would get {chunks} of your code, about "
        f"{answer['tokens']:,} tokens, {_price(answer)}; later each changed chunk, "
        "and each question about code."
    )


def _price(answer: Json) -> str:
    if answer["is_local"]:
        return "free of charge"
    match answer["dollars"]:
        case None:
            return "at a price that byok does not know"
        case dollars if dollars < _CENT:
            return "for less than a cent"
        case dollars:
            return f"for about ${dollars:,.2f}"


@commands.command("enable")
def enable(yes: YesOption = False, config: ConfigOption = None) -> None:
    """Confirm that your code may be sent to the embedding model, and start."""

    async def work(client: LocalClient) -> Json:
        with show_progress(_COUNTING):
            cost = await client.ask(Service.EMBED_ESTIMATE, {})
        say(describe_cost(cost))
        if not cost["is_local"]:
            say(f"The code leaves this machine for {cost['host']}; keys are masked.")
            confirm("Send it?", "byok embed enable", yes=yes)
        body = {"host": cost["host"], "model": cost["model"]}
        answer = await client.ask(Service.EMBED_ENABLE, body)
        if await client.daemon() is None:
            tell("byok is not running: filling begins once it runs (byok serve).")
        return answer

    show_vectors(with_client(work, config=config))


@commands.command("disable")
def disable(config: ConfigOption = None) -> None:
    """Send nothing and use no vectors from now on; existing ones are kept."""
    show_vectors(ask_index(Service.EMBED_DISABLE, config))


@commands.command("pause")
def pause(config: ConfigOption = None) -> None:
    """Stop creating vectors; searches still use the existing ones."""
    show_vectors(ask_index(Service.EMBED_PAUSE, config))


@commands.command("resume")
def resume(config: ConfigOption = None) -> None:
    """Continue creating vectors."""
    show_vectors(ask_index(Service.EMBED_RESUME, config))


@commands.command("clear")
def clear(yes: YesOption = False, config: ConfigOption = None) -> None:
    """Remove all vectors, and send nothing until the next `enable`."""
    confirm("Remove all vectors?", "byok embed clear", yes=yes)
    answer = ask_index(Service.EMBED_CLEAR, config)
    say(f"Removed {count_noun(answer['removed'], 'vector')}.")
    show_vectors(answer)


@commands.command("push")
def push(config: ConfigOption = None) -> None:
    """Upload this machine's vectors to your team's index."""
    answer = ask_index(Service.EMBED_PUSH, config, words="sending vectors to the team")
    say(f"The team has {count_noun(answer['pushed'], 'vector')} of yours.")


@commands.command("pull")
def pull(config: ConfigOption = None) -> None:
    """Download the missing vectors from your team's index."""
    answer = ask_index(
        Service.EMBED_PULL, config, words="fetching vectors from the team"
    )
    say(f"Took {count_noun(answer['pulled'], 'vector')} from the team.")
    show_vectors(answer)
