"""Ask a captured question again: a daemon of the replay's own, or the running one."""

import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from byok import __version__
from byok.config import Settings
from byok.daemon.token import read_token
from byok.errors import BadRequest, ByokError
from byok.features.capture.capture import Capture
from byok.features.capture.folder import CaptureFolder
from byok.keys import KeyLadder
from byok.keys.ladder import own_variable
from byok.model_ids import ListedModel
from byok.platform.paths import Paths
from byok.record import Hop
from byok.redact import Redactor
from byok.replay.playback import PlaybackTransports
from byok.server.run import listening
from byok.wire.json_body import parse_json
from byok.wiring.services import Services, open_services

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

_FOLDER = "byok-replay-"
_LARGEST = 64 * 2**20  # bytes of an answer
_PASSED = ("anthropic-version", "anthropic-beta", "x-mode", "x-api-version")
_KEY = "no-key-is-needed-for-a-replay"


def question_of(capture: Capture, model: str) -> bytes:
    """Return the client's body for this model, as the beginning of no conversation.

    Raises:
        BadRequest: it is not whole, or no question to a model.
    """
    if not capture.facts.get("model"):
        raise BadRequest("No model answered this request.", code="not_replayable")
    cut = any(p.left_out for p in capture.pieces if p.hop is Hop.FROM_CLIENT)
    try:
        body = parse_json(capture.text(Hop.FROM_CLIENT).encode())
    except (ValueError, RecursionError):
        body = None
    if cut or not isinstance(body, dict):
        raise BadRequest("The captured body is not whole.", code="not_replayable")
    body["model"] = model
    if "conversation_id" in body:
        body["conversation_id"] = str(uuid.uuid4())
    return orjson.dumps(body)


def recorded_model(capture: Capture) -> str:
    """Return the id of the model that answered."""
    facts = capture.facts
    return ListedModel(str(facts.get("upstream")), str(facts.get("model"))).id


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
    with tempfile.TemporaryDirectory(prefix=_FOLDER) as folder:
        root = Path(folder)
        own = Paths(root / "config", root / "state", root / "data")
        redactor = Redactor()

        def services() -> "AbstractAsyncContextManager[Services]":
            return open_services(
                settings,
                own,
                upstream=upstream or name,
                ladder=KeyLadder(environ={own_variable(name): _KEY}),
                redactor=redactor,
                embeds=False,
                prompts=paths.prompts,
                transports=PlaybackTransports(capture),
            )

        async with listening(settings, own, redactor, services) as daemon:
            token = read_token(own.token)
            _, text = await _post(daemon.url, token, capture, content)
            return text


async def ask_again(
    capture: Capture, model: str, url: str, token: str
) -> tuple[str, str]:
    """Ask the running daemon; return the id of the new request, and the answer.

    The daemon captures it, whether capturing is on or not.

    Raises:
        ByokError: it does not answer.
    """
    content = question_of(capture, model)
    return await _post(url, token, capture, content)


def read_new(paths: Paths, request_id: str) -> Capture | None:
    """Return the capture of a request that has just ended; None if it was not kept."""
    try:
        return CaptureFolder(paths.captures).read(request_id)
    except ByokError:
        return None


async def _post(
    url: str, token: str, capture: Capture, content: bytes
) -> tuple[str, str]:
    import aiohttp

    head = capture.head(Hop.FROM_CLIENT)
    given = {} if head is None else {n.lower(): v for n, v in head.headers}
    headers: dict[str, Any] = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "User-Agent": f"byok.replay/{__version__}",
        **{name: given[name] for name in _PASSED if name in given},
    }
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
        trust_env=False,
        cookie_jar=aiohttp.DummyCookieJar(),
    ) as session:
        try:
            async with session.post(
                url + str(capture.facts["endpoint"]),
                data=content,
                headers=headers,
                allow_redirects=False,
            ) as response:
                raw = await _read(response)
                return response.headers.get("X-Request-Id", ""), raw.decode(
                    "utf-8", "replace"
                )
        except aiohttp.ClientError as error:
            raise ByokError("The daemon broke off.", code="daemon_gone") from error


async def _read(response: Any) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > _LARGEST:
            raise ByokError("The answer is too large.", code="too_large")
        pieces.append(piece)
    return b"".join(pieces)
