"""byok demo: a sample project with conversations; it needs no key and leaves no trace.

First a daemon whose clock is behind answers an hour of sample conversations within
seconds. Then a second daemon serves a small sample project, and its page opens. A
made-up vendor (demo_vendor.py) answers both, with prices, a cache that expires, a model
that is gone, and one moment of overload. All files are in one temporary folder, which
is removed when the command ends. Where there is no editor to connect, it has the
settings of one.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import typer

from byok.cli.demo_vendor import GONE, LARGE, PRICES, SMALL, Vendor, selling
from byok.cli.installation import list_client_settings, undo
from byok.cli.terminal import (
    ShownProgress,
    discard_output,
    say,
    show_progress,
    tell,
)
from byok.clients.locations import (
    EDITORS,
    ClientKind,
    ClientMachine,
    find_location,
    find_machine,
)
from byok.core.daemon.token import read_token
from byok.core.errors import NotReady
from byok.core.platform.installation import quote
from byok.core.platform.paths import Paths, find_paths

_READY = "byok is listening on "
_STOP_SECONDS = 15.0
_FILES = {
    ".gitignore": "*.log\n",
    "shop/mail.log": "An order was sent.\n",  # the index skips it
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
_LIST = "shop/articles.csv"
_FILES[_LIST] = "number,kind,net\n" + "".join(
    f"{number},{('book', 'food', 'other')[number % 3]},{number * 37 % 4999}\n"
    for number in range(1500)
)
_SETTINGS = """{
    // No editor was found on this machine, so byok demo made this file to try it.
    "editor.fontSize": 14
}
"""
# The variable that says where editors have their settings.
_SETTINGS_HOME = {"win32": "APPDATA", "darwin": "HOME"}.get(
    sys.platform, "XDG_CONFIG_HOME"
)
_TOOL = {
    "name": "view",
    "description": "Read a file.",
    "input_schema": '{"type":"object","properties":{"path":{"type":"string"}}}',
}
_READ = 'Please view {"path": "%s"} and say what is remarkable.'
_QUESTION = "Where is the discount of a cart computed?"
UPSTREAM = "byok-demo"
_EDITOR = "Augment.vscode-augment/0.600.0"
_TERMINAL = "augment.cli/0.9.0"
_JETBRAINS = "augment.intellij/0.300.0"
_EDIT = {
    "path": "shop/orders.py",
    "lang": "python",
    "instruction": "Write the date of the order, too.",
    "prefix": "",
    "selected_text": _FILES["shop/orders.py"],
    "suffix": "",
}
_COMMIT = {
    "diff": """diff --git a/shop/cart.py b/shop/cart.py
--- a/shop/cart.py
+++ b/shop/cart.py
@@ -18,1 +18,1 @@
-        return cost * 95 // 100 if sum(self.articles.values()) >= 10 else cost
+        return cost * 90 // 100 if sum(self.articles.values()) >= 10 else cost
"""
}


class _Turn(NamedTuple):
    """A message of a client in a conversation, `minutes` before now."""

    minutes: int
    conversation: str
    client: str
    message: str
    folder: str = "shop"
    model: str = ""
    meets_overload: bool = False


class _Job(NamedTuple):
    """A request of a client outside of conversations, `minutes` before now."""

    minutes: int
    client: str
    path: str
    body: dict[str, Any]


_HOUR = (
    _Turn(58, "demo-4f2a1c", _EDITOR, _READ % _LIST),
    _Job(58, _EDITOR, "/generate-conversation-title", {"message": _READ % _LIST}),
    _Turn(56, "demo-4f2a1c", _EDITOR, "Which of them is the dearest?"),
    _Turn(54, "demo-4f2a1c", _EDITOR, "And how is the tax rounded?"),
    _Turn(47, "demo-71be05", _TERMINAL, "List the pages without a title.", "website"),
    _Turn(46, "demo-71be05", _TERMINAL, "Write one for each.", "website"),
    _Turn(41, "demo-4f2a1c", _EDITOR, "After lunch: which kinds are there?"),
    _Turn(40, "demo-4f2a1c", _EDITOR, "Write a test for the dearest one."),
    _Turn(24, "demo-d803e6", _JETBRAINS, "What does this do?", "orders-api", GONE),
    _Turn(23, "demo-d803e6", _JETBRAINS, "What does this do?", "orders-api", GONE),
    _Turn(22, "demo-d803e6", _JETBRAINS, "What does this do?", "orders-api", SMALL),
)
_NOW = (
    _Turn(0, "demo-9c20b7", _EDITOR, _READ % "shop/cart.py"),
    _Job(0, _JETBRAINS, "/instruction-stream", _EDIT),
    _Turn(
        *(0, "demo-5e11f4", _TERMINAL, "Who wrote the imprint?", "website"),
        meets_overload=True,
    ),
    _Job(0, _EDITOR, "/generate-commit-message-stream", _COMMIT),
)


def demo(
    link: Annotated[
        bool, typer.Option("--link", help="Print the page's address only.")
    ] = False,
) -> None:
    """Show byok with a sample project and no key; nothing of it stays.

    It needs no settings and changes none: its daemon has a port and a folder of its
    own. Requests, prices and errors are samples. Ctrl-C ends it, removes the folder,
    and disconnects editors that its page connected.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _end_silently)
    minutes_ago = [0]  # how far the demo's clock is behind; set before each request
    vendor = Vendor(lambda: time.time() - 60 * minutes_ago[0])
    with (
        tempfile.TemporaryDirectory(prefix="byok-demo-") as folder,
        selling(vendor),
    ):
        _prepare(Path(folder), vendor)
        try:
            tell("An hour of sample conversations first passes through a daemon.")
            with show_progress("filling the demo", after=0) as progress:
                asyncio.run(_fill(vendor, minutes_ago, progress))
            with _serving(folder) as (daemon, address):
                tell("It is asked the first questions of its own.")
                with show_progress("starting the demo", after=0) as progress:
                    asyncio.run(_send_all(address, _NOW, vendor, minutes_ago, progress))
                with _run(folder, "dashboard", *(["--link"] if link else [])):
                    pass
                say("Its requests, prices and errors are samples; no model answers.")
                if sys.platform != "win32":
                    home = quote(os.environ["BYOK_HOME"])
                    say(f"To sign in again: BYOK_HOME={home} byok dashboard")
                say("Ctrl-C ends the demo and removes all of it.")
                sys.stdout.flush()
                daemon.wait()
        except KeyboardInterrupt:
            pass  # Ctrl-C is how the demo ends
        finally:
            _disconnect(find_paths())
    tell("The demo is over, and its folder is gone.")


def _end_silently(*_: object) -> None:
    """End as by Ctrl-C, but without output, as the terminal is closed."""
    for stream in (sys.stdout, sys.stderr):
        discard_output(stream)
    raise KeyboardInterrupt


def _disconnect(paths: Paths) -> None:
    """Restore the settings files that the page connected; keep backups that remain."""
    undo(list_client_settings(paths))
    if any(path.is_file() for path in paths.client_backups.rglob("*")):
        folder = tempfile.mkdtemp(prefix="byok-demo-kept-")
        shutil.move(paths.client_backups, folder)
        tell(f"What editors' files were before byok stays in {folder}")


def _prepare(folder: Path, vendor: Vendor) -> None:
    """Write the project and the settings; point this process and its commands there."""
    for name, text in _FILES.items():
        file = folder / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    for name in (name for name in [*os.environ] if name.startswith("BYOK_")):
        del os.environ[name]
    os.environ["BYOK_HOME"] = str(folder / "home")
    # A key that is typed on the page must not go into the user's keyring.
    os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
    config = find_paths().config
    config.parent.mkdir(parents=True, mode=0o700)
    lines = [f"[upstreams.{UPSTREAM}]", f'base_url = "{vendor.url}"']
    lines += [f'model = "{LARGE}"', "[routing.models]"]
    small = f"byok:{UPSTREAM}:{SMALL}"
    lines += [f'{job} = "{small}"' for job in ("completion", "commit", "title")]
    for model, (fresh, cached, answer) in PRICES.items():
        lines += [f'[upstreams.{UPSTREAM}.facts."{model}"]', "window = 200_000"]
        lines += [f"price_input = {fresh}", f"price_cache_read = {cached}"]
        lines += [f"price_output = {answer}"]
    config.write_text("\n".join([*lines, ""]), "utf-8")
    config.chmod(0o600)


def _lay_editor(folder: Path) -> dict[str, str]:
    """Return the daemon's environment; without an editor it leads to a sample."""
    machine, environ = find_machine(), dict(os.environ)
    if any(find_location(kind, machine).path.parent.is_dir() for kind in EDITORS):
        return environ
    environ[_SETTINGS_HOME] = str(folder)
    home = Path(environ.get("HOME", machine.home))
    sample = ClientMachine(sys.platform, environ, home)
    settings = find_location(ClientKind.VSCODE, sample).path
    settings.parent.mkdir(parents=True)
    settings.write_text(_SETTINGS, "utf-8")
    return environ


async def _fill(
    vendor: Vendor, minutes_ago: list[int], progress: ShownProgress
) -> None:
    """Send an hour of sample requests to a daemon whose clock is behind."""
    from byok.core.redact import Redactor
    from byok.server.run import DaemonParts, listening
    from byok.settings import load_settings
    from byok.wiring.services import open_services

    paths, redactor = find_paths(), Redactor()
    settings = load_settings(paths.config, {"server": {"port": 0}})
    parts = DaemonParts(
        settings,
        paths,
        redactor,
        lambda: open_services(settings, paths, redactor=redactor),
    )
    async with listening(parts, clock=vendor.clock) as daemon:
        await _send_all(daemon.url, _HOUR, vendor, minutes_ago, progress)


@contextmanager
def _serving(folder: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a daemon for the project; yield its process and address.

    Raises:
        NotReady: it does not start.
    """
    options = ("--port", "0", "--workspace", f"{folder}/project")
    environ = _lay_editor(Path(folder) / "editor")
    with _run(folder, "serve", *options, environ=environ, captures=True) as daemon:
        try:
            tell("A daemon starts for the sample project, with a page of its own.")
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
    folder: str,
    *words: str,
    environ: Mapping[str, str] | None = None,
    captures: bool = False,
) -> subprocess.Popen[str]:
    """Start a command of this byok, in a folder without modules of other programs."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-P", "-m", "byok", *words],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE if captures else None,
        stderr=subprocess.DEVNULL if captures else None,
        text=True,
    )


async def _send_all(
    address: str,
    requests: Sequence[_Turn | _Job],
    vendor: Vendor,
    minutes_ago: list[int],
    progress: ShownProgress,
) -> None:
    """Send the requests as an editor does, and run the tools that answers call."""
    import aiohttp

    histories: dict[str, list[dict[str, Any]]] = {}
    headers = {"Authorization": f"Bearer {read_token(find_paths().token)}"}
    async with aiohttp.ClientSession(
        address, headers=headers, trust_env=False, raise_for_status=True
    ) as session:
        for done, request in enumerate(requests):
            progress.update(done=done, total=len(requests))
            minutes_ago[0] = request.minutes
            if isinstance(request, _Job):
                await _post(session, request.client, request.path, request.body)
                continue
            vendor.is_busy = request.meets_overload
            history = histories.setdefault(request.conversation, [])
            for use in await _chat(session, request, history, request.message):
                path = orjson.loads(use["input_json"])["path"]
                result = {
                    "tool_use_id": use["tool_use_id"],
                    "content": _FILES[path],
                    "is_error": False,
                }
                node = {"id": 1, "type": 1, "tool_result_node": result}
                await _chat(session, request, history, "", node)
        question = {"information_request": _QUESTION, "dialog": [], "blobs": {}}
        await _post(session, _EDITOR, "/agents/codebase-retrieval", question)


async def _chat(
    session: Any,
    turn: _Turn,
    history: list[dict[str, Any]],
    message: str,
    *nodes: dict[str, Any],
) -> list[dict[str, Any]]:
    """Send a chat request, add its turn to the history, and return the tool calls."""
    root = f"/sample/{turn.folder}"
    folder = {"repository_root": root, "folder_root": root}
    state = {"workspace_folders": [folder], "workspace_folders_unchanged": False}
    ide_state = {"id": 2, "type": 4, "ide_state_node": state}
    body: dict[str, Any] = {
        "conversation_id": turn.conversation,
        "message": message,
        "nodes": [*nodes, ide_state],
        "chat_history": [*history],
        "tool_definitions": [_TOOL],
    }
    if turn.model:
        body["model"] = f"byok:{UPSTREAM}:{turn.model}"
    lines = await _post(session, turn.client, "/chat-stream", body)
    answer_nodes = [node for line in lines for node in line.get("nodes", ())]
    calls = [node for node in answer_nodes if node.get("tool_use")]
    history.append(
        {
            "request_message": message,
            "request_nodes": body["nodes"],
            "response_text": "".join(line.get("text", "") for line in lines),
            "response_nodes": calls,
        }
    )
    return [node["tool_use"] for node in calls]


async def _post(
    session: Any, client: str, path: str, body: dict[str, Any]
) -> list[dict[str, Any]]:
    headers = {"User-Agent": client, "X-Request-Session-Id": client}
    async with session.post(path, json=body, headers=headers) as answer:
        lines = (await answer.read()).splitlines()
        return [orjson.loads(line) for line in lines if line]
