"""byok demo: a sample project and conversations, without a key or a trace.

A daemon of its own serves a small project that the command wrote, an agent's
conversations pass through it, and its page opens. All of it is in one temporary folder,
which goes when the command ends.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from byok.cli.terminal import say, show_progress, tell
from byok.core.daemon.token import read_token
from byok.core.errors import NotReady
from byok.core.platform.paths import find_paths

_READY = "byok is listening on "
_STOP_SECONDS = 15.0
_FILES = {
    "README.md": "# Shop\n\nA small shop: prices, a cart, and orders by mail.\n",
    "shop/prices.py": '''"""Prices in cents."""

VAT = {"book": 7, "food": 7, "other": 19}


def gross(net: int, kind: str = "other") -> int:
    """Return a price with its tax, rounded to the nearest cent."""
    return round(net * (100 + VAT[kind]) / 100)
''',
    "shop/cart.py": '''"""What a customer is about to buy."""

from shop.prices import gross


class Cart:
    """Articles with their number, and a discount from ten articles on."""

    def __init__(self) -> None:
        self.articles: dict[tuple[str, int], int] = {}

    def put(self, kind: str, net: int, count: int = 1) -> None:
        """Put some more of an article into the cart."""
        self.articles[kind, net] = self.articles.get((kind, net), 0) + count

    def total(self) -> int:
        """Return what everything costs, in cents."""
        cost = sum(gross(net, kind) * n for (kind, net), n in self.articles.items())
        return cost * 95 // 100 if sum(self.articles.values()) >= 10 else cost
''',
    "shop/orders.py": '''"""Orders are sent to the store by mail."""

from shop.cart import Cart


def order_text(cart: Cart, customer: str) -> str:
    """Write the mail of an order."""
    return f"{customer} orders for {cart.total() / 100:.2f} EUR."
''',
}
_TOOL = {
    "name": "view",
    "description": "Read a file.",
    "input_schema": '{"type":"object","properties":{"path":{"type":"string"}}}',
}
_READ = 'Please view {"path": "shop/cart.py"} and say when the discount begins.'
_CHATS = (
    ("demo-1", "What does this project do?"),
    ("demo-1", "And how is the tax rounded?"),
    ("demo-2", _READ),
)
_QUESTION = "Where is the discount of a cart computed?"


def demo(
    link: Annotated[
        bool, typer.Option("--link", help="Print the page's address only.")
    ] = False,
) -> None:
    """Show byok with a sample project and no key; nothing of it stays.

    It needs no settings and changes none: its daemon has a port and a folder of its
    own. Ctrl-C ends it and removes the folder.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="byok-demo-") as place:
        project = Path(place) / "project"
        for name, text in _FILES.items():
            file = project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        environ = {k: v for k, v in os.environ.items() if not k.startswith("BYOK_")}
        environ["BYOK_HOME"] = str(Path(place) / "home")
        try:
            with _serving(place, environ) as (daemon, address):
                with show_progress("filling the demo"):
                    token = read_token(find_paths(environ).token)
                    asyncio.run(_use(address, token))
                shown = ["dashboard", *(["--link"] if link else [])]
                with _run(place, environ, *shown):
                    pass
                say("Ctrl-C ends the demo and removes all of it.")
                sys.stdout.flush()
                daemon.wait()
        except KeyboardInterrupt:
            tell("The demo is over, and its folder is gone.")


@contextmanager
def _serving(
    place: str, environ: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a daemon for the project; give it and its address.

    Raises:
        NotReady: it does not start.
    """
    options = ("--upstream", "demo", "--port", "0", "--workspace", f"{place}/project")
    with _run(place, environ, "serve", *options, is_read=True) as daemon:
        try:
            with show_progress("starting the demo"):
                line = daemon.stdout.readline() if daemon.stdout else ""
            if not line.startswith(_READY):
                raise NotReady(
                    "The daemon of the demo does not start.",
                    hint="To see why: byok serve --upstream demo --port 0",
                )
            yield daemon, line.removeprefix(_READY).strip()
        finally:
            daemon.terminate()
            try:
                daemon.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                daemon.kill()


def _run(
    place: str, environ: dict[str, str], *words: str, is_read: bool = False
) -> subprocess.Popen[str]:
    """Start a command of this byok, in a folder where nobody else left a module."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", "-m", "byok", *words],
        cwd=place,
        env=environ,
        stdout=subprocess.PIPE if is_read else None,
        stderr=subprocess.DEVNULL if is_read else None,
        text=True,
    )


async def _use(address: str, token: str) -> None:
    """Chat and search like an editor: one chat calls a tool, which gets its result."""
    import aiohttp

    headers = {"Authorization": f"Bearer {token}", "User-Agent": "byok-demo"}
    async with aiohttp.ClientSession(
        address, headers=headers, trust_env=False, raise_for_status=True
    ) as session:
        for conversation, said in _CHATS:
            asked: dict[str, Any] = {
                "conversation_id": conversation,
                "message": said,
                "tool_definitions": [_TOOL],
            }
            lines = await _post(session, "/chat-stream", asked)
            uses = [
                node["tool_use"]
                for line in lines
                for node in line.get("nodes", ())
                if node.get("tool_use")
            ]
            for use in uses:
                result = {
                    "tool_use_id": use["tool_use_id"],
                    "content": _FILES["shop/cart.py"],
                    "is_error": False,
                }
                nodes = [{"id": 1, "type": 1, "tool_result_node": result}]
                calls = [{"id": 1, "type": 5, "tool_use": use}]
                before = {"request_message": said, "response_nodes": calls}
                more = {"message": "", "nodes": nodes, "chat_history": [before]}
                await _post(session, "/chat-stream", {**asked, **more})
        wanted = {"information_request": _QUESTION, "dialog": [], "blobs": {}}
        await _post(session, "/agents/codebase-retrieval", wanted)


async def _post(session: Any, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with session.post(path, json=body) as answer:
        lines = (await answer.read()).splitlines()
        return [orjson.loads(line) for line in lines if line]
