"""A web on loopback: a SearXNG server, and a proxy behind which all other hosts are."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.upstream import LoopbackServer

HTML = {"Content-Type": "text/html; charset=utf-8"}


@dataclass
class Served:
    """What an address answers; `more` are pieces that come behind the body."""

    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: HTML)
    status: int = 200
    more: AsyncIterator[bytes] | None = None


def page(title: str, *paragraphs: str) -> Served:
    """A page with a navigation, which is no part of its text."""
    text = "".join(f"<p>{words}</p>" for words in paragraphs)
    html = f"<html><head><title>{title}</title></head><body><nav>Home</nav><main><h1>"
    return Served(f"{html}{title}</h1>{text}</main></body></html>".encode())


def redirect(where: str, status: int = 302) -> Served:
    return Served(headers={"Location": where}, status=status)


def hit(
    url: str, title: str | None = "A page", content: str = "Some words."
) -> dict[str, Any]:
    return {"url": url, "title": title, "content": content, "engine": "fake"}


class FakeWeb(LoopbackServer):
    """Answers /search with its `hits`, and whole addresses with its `pages`.

    `asked` are the targets as they came, `headers` what came with them.
    """

    def __init__(self, *hits: Any, pages: Mapping[str, Served] | None = None) -> None:
        self.hits: list[Any] = [*hits]
        self.pages = dict(pages or {})
        self.answer: Served | None = None  # to searches
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []
        self.pause: asyncio.Event | None = None
        self.reached = asyncio.Event()
        self.hung_up = asyncio.Event()

    def routes(self) -> list[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._serve)]

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        target = request.raw_path
        self.asked.append(target)
        self.headers.append(request.headers)
        self.bodies.append(await request.read())
        self.reached.set()
        try:
            if self.pause is not None:
                await self.pause.wait()
            return await self._answer(request, target)
        except (ConnectionError, asyncio.CancelledError):
            self.hung_up.set()
            raise

    async def _answer(self, request: web.Request, target: str) -> web.StreamResponse:
        if not target.startswith("/"):
            served = self.pages.get(target, Served(status=404))
        elif self.answer is not None:
            served = self.answer
        else:
            query = request.query.get("q", "")
            return web.json_response({"query": query, "results": self.hits})
        if served.more is None:
            return web.Response(
                body=served.body, status=served.status, headers=served.headers
            )
        out = web.StreamResponse(status=served.status, headers=served.headers)
        await out.prepare(request)
        await out.write(served.body)
        async for piece in served.more:
            await out.write(piece)
        return out
