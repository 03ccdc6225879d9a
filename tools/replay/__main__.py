"""python -m tools.replay ID: replay a captured request, and show the differences.

Without --model nothing is sent: this version of byok reads the recorded bytes of the
upstream, and the exit code is 1 if a client would now get something else. With it, the
running daemon asks a model again, which may cost tokens. No tool is ever run.
"""

import argparse
import asyncio
import sys
import tempfile
import uuid
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import aiohttp
import orjson

from byok import __version__
from byok.cli.capture import open_folder
from byok.cli.command_context import load
from byok.cli.daemon_client import find_daemon
from byok.cli.terminal import fail, say, say_json, tell
from byok.core.daemon.token import read_token
from byok.core.errors import BadRequest, ByokError, NotReady
from byok.core.platform.paths import Paths, find_paths
from byok.core.record import Hop
from byok.core.redact import Redactor
from byok.core.routing import ListedModel
from byok.core.wire.json_body import parse_json
from byok.features.capture.capture import Capture
from byok.server.run import DaemonParts, listening
from byok.settings import Settings
from byok.settings.keys import KeyLadder
from byok.settings.keys.ladder import own_variable
from byok.wiring.services import Services, open_services
from tools.replay.playback import PlaybackTransports
from tools.replay.turn import TurnDifference, compare_turns, read_turn
from tools.trials.daemon import OVERRIDES

_MAX_ANSWER_BYTES = 64 * 2**20  # bytes of an answer
_FORWARDED_HEADERS = ("anthropic-version", "anthropic-beta", "x-mode", "x-api-version")
_KEY = "no-key-is-needed-for-a-replay"
_MAX_SIDE_CHARS = 300  # characters of each side


def recorded_model(capture: Capture) -> str:
    """Return the id of the model that answered."""
    facts = capture.facts
    return ListedModel(str(facts.get("upstream")), str(facts.get("model"))).id


def question_of(capture: Capture, model: str) -> bytes:
    """Return the client's body for this model, with a new conversation id.

    Raises:
        BadRequest: the body is incomplete, or no model answered it.
    """
    if not capture.facts.get("model"):
        raise BadRequest("No model answered this request.")
    is_cut = any(p.left_out for p in capture.pieces if p.hop is Hop.FROM_CLIENT)
    try:
        body = parse_json(capture.text(Hop.FROM_CLIENT).encode())
    except (ValueError, RecursionError):
        body = None
    if is_cut or not isinstance(body, dict):
        raise BadRequest("The captured body is not whole.")
    body["model"] = model
    if "conversation_id" in body:
        body["conversation_id"] = str(uuid.uuid4())
    return orjson.dumps(body)


async def replay_recorded(
    capture: Capture, settings: Settings, paths: Paths, upstream: str = ""
) -> str:
    """Give the recorded bytes of the upstream to this byok; return the client's answer.

    Nothing is sent to an upstream: a daemon with the user's settings runs in a
    temporary folder for this request, and its transports replay the capture.

    Raises:
        ByokError: the request cannot be replayed with these settings.
    """
    name = str(capture.facts.get("upstream"))
    content = question_of(capture, recorded_model(capture))
    with tempfile.TemporaryDirectory(prefix="byok-replay-") as folder:
        root = Path(folder)
        own = Paths(root / "config", root / "state", root / "data")
        own.prompts = paths.prompts
        redactor = Redactor()

        def services() -> AbstractAsyncContextManager[Services]:
            return open_services(
                settings,
                own,
                upstream=upstream or name,
                ladder=KeyLadder(environ={own_variable(name): _KEY}),
                redactor=redactor,
                embeds=False,
                transports=PlaybackTransports(capture),
            )

        parts = DaemonParts(settings, own, redactor, services)
        async with listening(parts) as daemon:
            return await _post(daemon.url, read_token(own.token), capture, content)


async def ask_again(capture: Capture, model: str) -> str:
    """Make the running daemon ask a model; return the client's answer.

    Raises:
        ByokError: there is no daemon, or it does not answer.
    """
    content, paths = question_of(capture, model), find_paths()
    daemon = await asyncio.to_thread(find_daemon, paths)
    if daemon is None:
        raise NotReady("byok is not running.", hint="Start it: byok serve")
    url = f"http://127.0.0.1:{daemon.port}"
    return await _post(url, read_token(paths.token), capture, content)


async def _post(url: str, token: str, capture: Capture, content: bytes) -> str:
    head = capture.head(Hop.FROM_CLIENT)
    recorded = {} if head is None else {n.lower(): v for n, v in head.headers}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "User-Agent": f"byok.replay/{__version__}",
        **{name: recorded[name] for name in _FORWARDED_HEADERS if name in recorded},
    }
    async with (
        aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session,
        session.post(
            url + str(capture.facts["endpoint"]),
            data=content,
            headers=headers,
            allow_redirects=False,
        ) as response,
    ):
        raw = await response.content.read(_MAX_ANSWER_BYTES)
        while len(raw) < _MAX_ANSWER_BYTES and (
            chunk := await response.content.readany()
        ):
            raw += chunk
        return raw.decode("utf-8", "replace")


def find_differences(options: argparse.Namespace) -> list[TurnDifference]:
    """Replay the named capture, and compare the recorded answer with the new one.

    Raises:
        ByokError: there is no such capture, or it cannot be replayed.
    """
    capture = open_folder().read(options.id)
    if options.model:
        model = recorded_model(capture) if options.model == "same" else options.model
        answer = asyncio.run(ask_again(capture, model))
    else:
        settings, paths = load(options.config, OVERRIDES)
        answer = asyncio.run(
            replay_recorded(capture, settings, paths, options.upstream)
        )
    endpoint = str(capture.facts["endpoint"])
    recorded = read_turn(endpoint, capture.text(Hop.TO_CLIENT))
    return compare_turns(recorded, read_turn(endpoint, answer), lines=not options.model)


def _show(differences: list[TurnDifference]) -> None:
    if not differences:
        say("The client would get the same as it did.")
    for difference in differences:
        recorded, now = difference.recorded, difference.now
        say(f"{difference.what} differs:")
        say(f"  recorded: {_shorten(recorded, now)}")
        say(f"  now:      {_shorten(now, recorded)}")
    if any("[redacted]" in difference.recorded for difference in differences):
        tell("The capture holds [redacted] where a secret stood.")


def _shorten(text: str, other: str) -> str:
    """Shorten a text to the context of its first difference."""
    offset = 0
    while offset < min(len(text), len(other)) and text[offset] == other[offset]:
        offset += 1
    start = max(0, offset - _MAX_SIDE_CHARS // 3)
    return ("..." if start else "") + repr(text[start : start + _MAX_SIDE_CHARS])


def main() -> int:
    """Replay; the exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.replay", description=__doc__)
    parser.add_argument("id", help="the beginning of an id of `byok capture list`")
    parser.add_argument("--model", default="", help="ask this model now, or the `same`")
    parser.add_argument("--upstream", default="", help="as of byok serve")
    parser.add_argument("--config", type=Path, help="a settings file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    try:
        differences = find_differences(options)
    except ByokError as error:
        fail(error)
        return 2
    if options.json:
        say_json([difference._asdict() for difference in differences])
    else:
        _show(differences)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
