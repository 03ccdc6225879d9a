"""byok as processes: a command, `byok serve` and what must hold of it, the wheel."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from byok.core.daemon import challenge
from tests.fakes.patience import PATIENCE, START, until
from tests.fakes.raw import RawAnswer, ask, connected, filled, request
from tests.fakes.template import CAN_FORK, Forked, fork
from tests.fakes.upstream import FakeUpstream, Script, delta, event

needs_terminal = pytest.mark.skipif(os.name != "posix", reason="no pseudo-terminal")
ROOT = Path(__file__).parents[2]
SERVE = (sys.executable, "-m", "byok", "serve")


def run_byok(
    *arguments: str | Path,
    stdin: str = "",
    env: Mapping[str, str] | None = None,
    seconds: float = START,
) -> "subprocess.CompletedProcess[str]":
    """Run byok to its end in the environment of the test, plus `env`."""
    environ = {**os.environ, **(env or {})}
    words = list(map(str, arguments))
    if CAN_FORK:
        new = tempfile.TemporaryFile
        with new() as given, new() as out, new() as err:
            given.write(stdin.encode())
            given.seek(0)
            handles = given.fileno(), out.fileno(), err.fileno()
            code = fork(words, environ, ROOT, handles).wait_for_end(seconds)
            for file in (out, err):
                file.seek(0)
            texts = out.read().decode(), err.read().decode()
        return subprocess.CompletedProcess(words, code, *texts)
    return subprocess.run(
        [sys.executable, "-m", "byok", *words],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env=environ,
        cwd=ROOT,
        timeout=seconds,
        check=False,
    )


@contextmanager
def serving_sync(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    program: Sequence[str] = SERVE,
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run `byok serve` and give the process and its first line; kill it at the end."""
    process = subprocess.Popen(
        [*program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **(env or {})},
        cwd=ROOT,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.communicate()


KEY = "canary/key+0123456789-ABC_def.ghi="
READY = re.compile(rb"byok is listening on http://127\.0\.0\.1:(\d+)\n")
LIMITED = """
import os, resource, sys
for pair in sys.argv[1].split():
    name, value = pair.split("=")
    resource.setrlimit(getattr(resource, name), (int(value), int(value)))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@dataclass
class Program:
    """A running `byok serve`; what it writes to stderr is in a file beside its home."""

    process: asyncio.subprocess.Process | Forked
    home: Path
    port: int
    ready: bytes

    @property
    def token_file(self) -> Path:
        return self.home / "state" / "token"

    @property
    def log_file(self) -> Path:
        return self.home / "state" / "log" / "byok.log"

    @property
    def token(self) -> str:
        return self.token_file.read_text("ascii").strip()

    @property
    def owner_token(self) -> str:
        """What byok's own commands send to this daemon."""
        secret = (self.home / "state" / "owner-secret").read_text("ascii").strip()
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=PATIENCE
        )
        body, kind = b'{"nonce": "0123456789abcdef"}', "application/json"
        connection.request("POST", challenge.PATH, body, {"Content-Type": kind})
        instance = json.loads(connection.getresponse().read())["instance"]
        connection.close()
        return challenge.derive_owner_token(secret, self.port, instance)

    @property
    def err(self) -> bytes:
        return _stderr(self.home).read_bytes()

    @property
    def rss(self) -> int:
        """Resident memory in bytes (Linux only)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    def filled(self, data: bytes) -> bytes:
        """Put this daemon's port and tokens into a request."""
        owner = self.owner_token if b"OWNER" in data else ""
        return filled(data, self.port, self.token, owner)

    async def ask(self, data: bytes, patience: float = PATIENCE) -> RawAnswer:
        """Send one request on a connection of its own."""
        return await ask(self.port, self.filled(data), patience)

    async def post(self, target: str, *lines: bytes, **body: Any) -> RawAnswer:
        """Send a body, with more lines of the head, on a connection of its own."""
        data = json.dumps(body).encode()
        return await self.ask(request(*lines, target=target.encode(), body=data))

    async def until_complete(self, folders: int = 1) -> None:
        """Wait until so many folders that it follows are indexed."""

        async def is_complete() -> bool:
            told = (await self.post("/byok/index/status")).json
            phases = [space["phase"] for space in told["workspaces"]]
            return phases == ["complete"] * folders and told["state"] == "indexed"

        await until(is_complete, START)

    async def check_well(self) -> None:
        """It answers a chat at once, and wrote no traceback and no secret."""
        answer = await self.post("/chat", message="Still there?")
        assert (answer.status, answer.json["stop_reason"]) == (200, 1)
        self.check_log()

    def check_log(self) -> None:
        """Neither stderr nor the log has a traceback or a secret."""
        written = self.err
        if self.log_file.is_file():
            written += self.log_file.read_bytes()
        assert b"Traceback" not in written
        assert KEY.encode() not in written
        if self.token_file.is_file():
            assert self.token.encode() not in written

    async def ended(self, *numbers: signal.Signals) -> tuple[int, bytes, bytes]:
        """Send signals; return exit code, stdout and stderr."""
        for number in numbers:
            self.process.send_signal(number)
        out, _ = await asyncio.wait_for(self.process.communicate(), PATIENCE)
        assert self.process.returncode is not None
        return self.process.returncode, self.ready + (out or b""), self.err


@asynccontextmanager
async def starting(
    home: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    limits: str = "",
    stderr: int | None = None,
) -> AsyncIterator[Program]:
    """Start the daemon without waiting for it; `limits` are as "RLIMIT_NOFILE=256".

    With an `env`, `stderr` or `limits` of its own it is started as users start it.
    """
    words = ["serve", "--port", "0", *arguments]
    command = ["-m", "byok", *words]
    if limits:
        command = ["-c", LIMITED, limits, *command]
    environ = {**os.environ, "BYOK_HOME": str(home), "BYOK_KEY_FAKE": KEY}
    environ |= {"PYTHONPATH": str(ROOT), **(env or {})}
    process: asyncio.subprocess.Process | Forked
    with _stderr(home).open("wb") as written:
        if CAN_FORK and not limits and stderr is None and env is None:
            process = await _forked(words, environ, cwd, written.fileno())
        else:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=written if stderr is None else stderr,
                env=environ,
                cwd=cwd,
                start_new_session=True,
            )
    try:
        yield Program(process, home, 0, b"")
    finally:
        if sys.platform == "win32":
            with suppress(ProcessLookupError):
                process.kill()
        else:
            with suppress(ProcessLookupError):  # with what a restart has started
                os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


async def _forked(
    words: list[str], env: Mapping[str, str], cwd: Path, stderr: int
) -> Forked:
    reader = asyncio.StreamReader()
    stdout, write = os.pipe()
    with Path(os.devnull).open("rb") as stdin:
        process = fork(words, env, cwd, (stdin.fileno(), write, stderr))
    os.close(write)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stdout, "rb")
    )
    process.stdout = reader
    return process


@asynccontextmanager
async def serving(
    home: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    limits: str = "",
    stderr: int | None = None,
) -> AsyncIterator[Program]:
    """Run the daemon in a home of its own until the block ends."""
    async with starting(
        home, *arguments, env=env, cwd=cwd, limits=limits, stderr=stderr
    ) as program:
        assert program.process.stdout is not None
        program.ready = await asyncio.wait_for(program.process.stdout.readline(), START)
        match = READY.fullmatch(program.ready)
        assert match, (program.ready, program.err)
        program.port = int(match[1])
        yield program


def configure(home: Path, url: str, more: str = "") -> None:
    """Write the settings of one upstream called fake, without models."""
    home.mkdir(mode=0o700, exist_ok=True)
    fake = f'[upstreams.fake]\nbase_url = "{url}"\nmodel = "m"\n'
    (home / "config.toml").write_text(f'{fake}[log]\nlevel = "debug"\n{more}')


def _stderr(home: Path) -> Path:
    return home.with_name(f"{home.name}.stderr")


def children_of(pid: int) -> list[int]:
    """Return the processes that a process started and that still run (Linux)."""
    found: list[int] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError):  # that thread has just ended
            found += map(int, children.read_text().split())
    return found


STREAM = request(target=b"/chat-stream", body=b'{"message": "Hello."}')

HELD = Script([delta(content="One")], end="hang")

PRICES = """
[upstreams.fake.facts."m"]
price_input = 2
price_output = 10
"""
COUNTED = event(
    {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 9}}
)


async def hang_up(program: Program, fake: FakeUpstream, conversation: str) -> None:
    """Begin a chat, and leave in its middle."""
    body = json.dumps({"message": "Hello.", "conversation_id": conversation}).encode()
    fake.play(HELD)
    fake.reached.clear()
    async with connected(program.port) as connection:
        sent = request(target=b"/chat-stream", body=body)
        await connection.send(program.filled(sent))
        await asyncio.wait_for(fake.reached.wait(), PATIENCE)
    await asyncio.wait_for(fake.hung_up.wait(), PATIENCE)


async def streams(
    program: Program, fake: FakeUpstream, size: int = 8
) -> list["asyncio.Task[RawAnswer]"]:
    """Open streams; return once the upstream answers every one of them."""

    async def one() -> RawAnswer:
        async with connected(program.port) as connection:
            await connection.send(program.filled(STREAM))
            return await connection.answer()

    tasks = [asyncio.ensure_future(one()) for _ in range(size)]
    await until(lambda: fake.open >= size)
    return tasks


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the clone; needs no registry."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, venv: Path) -> None:
    """Make a virtual environment with the wheel in it.

    What byok needs comes from the environment of the tests, so that nothing is fetched;
    the clone itself is not in that, as it is installed editable there.
    """
    make = [sys.executable, "-m", "venv", "--without-pip", str(venv)]
    subprocess.run(make, check=True, capture_output=True)
    python = str(venv / "bin" / "python")
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
            *("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"),
            str(wheel),
        ],
        check=True,
        capture_output=True,
    )
    [packages] = venv.glob("lib/python*/site-packages")
    rest = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "rest.pth").write_text("\n".join(sorted(rest)))
