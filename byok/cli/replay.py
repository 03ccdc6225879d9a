"""byok replay: a captured request once more, and what is different."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from byok.cli.capture import IdArgument, open_folder
from byok.cli.command_context import ConfigOption, JsonOption, UpstreamOption, load
from byok.cli.confirm import YesOption, confirm
from byok.cli.output import say, say_json, tell
from byok.errors import NotReady

if TYPE_CHECKING:
    from byok.features.capture.capture import Capture
    from byok.replay.turn import TurnDifference

EXIT_DIFFERENT = 1
_SHOWN = 300  # characters of each side


def replay(
    wanted: IdArgument,
    model: Annotated[
        str,
        typer.Option("--model", "-m", metavar="MODEL", help="Ask this model now."),
    ] = "",
    ask: Annotated[bool, typer.Option("--ask", help="Ask the same model now.")] = False,
    yes: YesOption = False,
    upstream: UpstreamOption = "",
    json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Replay a captured request, and show the differences.

    Without --model and --ask nothing is sent: this version of byok reads the recorded
    bytes of the upstream, and the exit code is 1 if a client would now get something
    else. With one of them, the running daemon asks a model again. No tool is ever run.
    """
    from byok.replay.asking import recorded_model

    capture = open_folder().read(wanted)
    if not (model or ask):
        _replay_recorded(capture, config, upstream, json=json)
    else:
        _ask_again(capture, model or recorded_model(capture), yes=yes, json=json)


def _replay_recorded(
    capture: "Capture", config: Any, upstream: str, *, json: bool
) -> None:
    from byok.record import Hop
    from byok.replay.asking import replay_recorded
    from byok.replay.turn import compare_turns, read_turn
    from byok.trials.trial_daemon import OVERRIDES

    settings, paths = load(config, OVERRIDES)
    text = asyncio.run(replay_recorded(capture, settings, paths, upstream))
    endpoint = str(capture.facts["endpoint"])
    before = read_turn(endpoint, capture.text(Hop.TO_CLIENT))
    found = compare_turns(before, read_turn(endpoint, text), lines=True)
    if json:
        say_json({"id": capture.id, "differences": [one._asdict() for one in found]})
    else:
        _show(found, "The client would get the same as it did.")
    if found:
        raise typer.Exit(EXIT_DIFFERENT)


def _ask_again(capture: "Capture", model: str, *, yes: bool, json: bool) -> None:
    from byok.daemon.token import read_token
    from byok.daemon_client.find import find_daemon
    from byok.platform.paths import find_paths
    from byok.record import Hop
    from byok.replay.asking import ask_again, read_new
    from byok.replay.turn import compare_turns, read_turn

    question = f"Send the captured question to {model}? That may cost tokens."
    command = f"byok replay {capture.id} --model {model}"
    if not yes and not confirm(question, command):
        return
    paths = find_paths()
    daemon = find_daemon(paths)
    if daemon is None:
        raise NotReady("byok is not running.", hint="Start it: byok serve")
    url = f"http://127.0.0.1:{daemon.port}"
    asked = ask_again(capture, model, url, read_token(paths.token))
    request_id, text = asyncio.run(asked)
    new = _wait_for(lambda: read_new(paths, request_id))
    endpoint = str(capture.facts["endpoint"])
    before = read_turn(endpoint, capture.text(Hop.TO_CLIENT))
    found = compare_turns(before, read_turn(endpoint, text), lines=False)
    times = [*_times(capture.facts), *_times(new.facts if new else {})]
    if json:
        rows = [one._asdict() for one in found]
        say_json({"id": capture.id, "new": request_id, "differences": rows})
        return
    _show(found, "The answer has the same text, calls and counts.")
    say(f"recorded: first byte {times[0]}, end {times[1]}")
    say(f"now:      first byte {times[2]}, end {times[3]}   ({request_id})")


def _wait_for(read: Any) -> Any:
    """Give the daemon a moment to write the new capture."""
    from byok.cli.ask import ask_daemon

    ask_daemon("capture")  # it answers once everything is written
    return read()


def _times(facts: dict[str, Any]) -> tuple[str, str]:
    first, end = facts.get("first_byte"), facts.get("seconds")
    return tuple("-" if t is None else f"{t:.2f} s" for t in (first, end))  # type: ignore[return-value]


def _show(found: "list[TurnDifference]", same: str) -> None:
    if not found:
        say(same)
    for one in found:
        say(f"{one.what} differs:")
        say(f"  recorded: {_shorten(one.recorded, one.now)}")
        say(f"  now:      {_shorten(one.now, one.recorded)}")
    if any("[redacted]" in one.recorded for one in found):
        tell("byok: the capture holds [redacted] where a secret stood.")


def _shorten(text: str, other: str) -> str:
    """Cut a text to the surroundings of its first difference."""
    same = 0
    while same < min(len(text), len(other)) and text[same] == other[same]:
        same += 1
    start = max(0, same - _SHOWN // 3)
    return ("..." if start else "") + repr(text[start : start + _SHOWN])
