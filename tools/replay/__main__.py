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

_LARGEST = 64 * 2**20  # bytes of an answer
_PASSED = ("anthropic-version", "anthropic-beta", "x-mode", "x-api-version")
_KEY = "no-key-is-needed-for-a-replay"
_SHOWN = 300  # characters of each side


def recorded_model(capture: Capture) -> str:
    """Return the id of the model that answered."""
    facts = capture.facts
    return ListedModel(str(facts.get("upstream")), str(facts.get("model"))).id


def question_of(capture: Capture, model: str) -> bytes:
    """Return the client's body for this model, as the beginning of no conversation.

    Raises:
        BadRequest: it is not whole, or no question to a model.
    """
    if not capture.facts.get("model"):
        raise BadRequest("No model answered this request.")
    cut = any(p.left_out for p in capture.pieces if p.hop is Hop.FROM_CLIENT)
    try:
        body = parse_json(capture.text(Hop.FROM_CLIENT).encode())
    except (ValueError, RecursionError):
        body = None
    if cut or not isinstance(body, dict):
        raise BadRequest("The captured body is not whole.")
    body["model"] = model
    if "conversation_id" in body:
        body["conversation_id"] = str(uuid.uuid4())
    return orjson.dumps(body)


async def replay_recorded(
    capture: Capture, settings: Settings, paths: Paths, upstream: str = ""
) -> str:
    """Let today's byok read what the upstream sent; return what a client gets.

    Nothing is sent anywhere: a daemon with the user's settings runs in a temporary
    folder for this one request, and its upstreams are played.

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
    """Let the running daemon ask a model; return what a client gets.

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
    given = {} if head is None else {n.lower(): v for n, v in head.headers}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "User-Agent": f"byok.replay/{__version__}",
        **{name: given[name] for name in _PASSED if name in given},
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
        raw = await response.content.read(_LARGEST)
        while len(raw) < _LARGEST and (more := await response.content.readany()):
            raw += more
        return raw.decode("utf-8", "replace")


def find_differences(given: argparse.Namespace) -> list[TurnDifference]:
    """Replay the capture that is named, and compare what a client got and gets.

    Raises:
        ByokError: there is no such capture, or it cannot be replayed.
    """
    capture = open_folder().read(given.id)
    if given.model:
        model = recorded_model(capture) if given.model == "same" else given.model
        now = asyncio.run(ask_again(capture, model))
    else:
        settings, paths = load(given.config, OVERRIDES)
        now = asyncio.run(replay_recorded(capture, settings, paths, given.upstream))
    endpoint = str(capture.facts["endpoint"])
    before = read_turn(endpoint, capture.text(Hop.TO_CLIENT))
    return compare_turns(before, read_turn(endpoint, now), lines=not given.model)


def _show(found: list[TurnDifference]) -> None:
    if not found:
        say("The client would get the same as it did.")
    for one in found:
        say(f"{one.what} differs:")
        say(f"  recorded: {_shorten(one.recorded, one.now)}")
        say(f"  now:      {_shorten(one.now, one.recorded)}")
    if any("[redacted]" in one.recorded for one in found):
        tell("The capture holds [redacted] where a secret stood.")


def _shorten(text: str, other: str) -> str:
    """Cut a text to the surroundings of its first difference."""
    same = 0
    while same < min(len(text), len(other)) and text[same] == other[same]:
        same += 1
    start = max(0, same - _SHOWN // 3)
    return ("..." if start else "") + repr(text[start : start + _SHOWN])


def main() -> int:
    """Replay; the exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.replay", description=__doc__)
    parser.add_argument("id", help="the beginning of an id of `byok capture list`")
    parser.add_argument("--model", default="", help="ask this model now, or the `same`")
    parser.add_argument("--upstream", default="", help="as of byok serve")
    parser.add_argument("--config", type=Path, help="a settings file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    try:
        found = find_differences(given)
    except ByokError as error:
        fail(error)
        return 2
    if given.json:
        say_json([one._asdict() for one in found])
    else:
        _show(found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
