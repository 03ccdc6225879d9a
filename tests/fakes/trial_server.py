"""A server that speaks the trial protocol, strictly, on a free loopback port."""

import json
from typing import Any

from aiohttp import web

from tests.fakes.upstream import LoopbackServer

VERSION = "2"
MODELS = [
    {"called": "small", "window": 4096, "sees": False},
    {"called": "large", "window": 128_000, "sees": True},
    {"called": "larger", "window": 256_000, "sees": None},
]
_MOST_WORDS = 256


class TrialServer(LoopbackServer):
    """Answers each chat with the next script, a list of lines; the last one for ever.

    `TOOL` in a script is the name that the first tool was sent by.

    It refuses whatever lacks the version header, and `key` where that is set; options
    that it does not know; and more words than it writes.
    """

    def __init__(self, key: str = "") -> None:
        self.key = key
        self.scripts: list[list[dict[str, Any]]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.pages: list[str] = []
        self._played = 0

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/trial/chat", self._chat),
            web.get("/trial/catalog", self._catalog),
            web.post("/trial/loaded", self._loaded),
        ]

    def play(self, *scripts: list[dict[str, Any]]) -> None:
        """Set the scripts of the next chats."""
        self.scripts, self._played = list(scripts), 0

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if refused := self._refuse(request):
            return refused
        body = await request.json()
        self.requests.append(body)
        if problem := _find_problem(body):
            return _refusal(problem)
        tool = next((tool["name"] for tool in body.get("tools", ())), "")
        script = self.scripts[min(self._played, len(self.scripts) - 1)]
        self._played += 1
        out = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await out.prepare(request)
        for line in script:
            raw = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            raw = raw.replace(b"TOOL", tool.encode())
            for half in (raw[: len(raw) // 2], raw[len(raw) // 2 :]):
                await out.write(half)
        await out.write_eof()
        return out

    async def _catalog(self, request: web.Request) -> web.Response:
        if refused := self._refuse(request):
            return refused
        self.pages.append(request.rel_url.raw_path_qs)
        first = int(request.rel_url.query.get("from", "0"))
        page: dict[str, Any] = {"entries": MODELS[first : first + 2]}
        if first + 2 < len(MODELS):
            page["next"] = f"catalog?from={first + 2}"
        return web.json_response(page)

    async def _loaded(self, request: web.Request) -> web.Response:
        if refused := self._refuse(request):
            return refused
        wanted = (await request.json())["called"]
        found = [model for model in MODELS if model["called"] == wanted]
        return web.json_response(found[0] if found else {})

    def _refuse(self, request: web.Request) -> web.Response | None:
        self.headers.append(dict(request.headers))
        if request.headers.get("X-Trial-Version") != VERSION:
            return _refusal("The header X-Trial-Version is missing.")
        if request.headers.get("X-Trial-Key", "") != self.key:
            return _refusal("Who are you?", 401)
        return None


def _find_problem(body: dict[str, Any]) -> str:
    options = body.get("options", {})
    unknown = options.keys() - {"window", "most_words"}
    if unknown:
        return f"options.{min(unknown)}: unknown option"
    if options.get("most_words", 0) > _MOST_WORDS:
        return f"options.most_words: at most {_MOST_WORDS}"
    return ""


def _refusal(problem: str, status: int = 400) -> web.Response:
    headers = {"X-Trial-Wait": "5"} if status == 429 else {}
    return web.json_response({"problem": problem}, status=status, headers=headers)
