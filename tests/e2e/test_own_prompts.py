"""The user's own prompts with the real daemon: start, reload, and broken ones."""

import asyncio
import os
from pathlib import Path

import pytest

from byok.core.prompts.prompt_set import shipped_prompts
from tests.fakes.program import Program, configure, run_byok, serving, starting
from tests.fakes.raw import request
from tests.fakes.upstream import FakeUpstream

ASK = request(body=b'{"message": "Hello.", "mode": "CHAT"}')
BROKEN = "Mine.\n{{oops}}"
TOLD = "chat.md:2: {{oops}} is no slot. Known are: shipped."
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture
def home(tmp_path: Path, fake: FakeUpstream) -> Path:
    """A home whose own prompt for chats says what it is."""
    made = tmp_path / "home"
    configure(made, fake.url)
    (made / "prompts").mkdir(mode=0o700)
    write(made, "Mine, first.\n{{shipped}}")
    return made


def write(home: Path, text: str) -> None:
    file = home / "prompts" / "chat.md"
    file.write_text(text)
    file.chmod(0o600)


async def system_of(program: Program, fake: FakeUpstream) -> str:
    """Return the system message of a chat."""
    assert (await program.ask(ASK)).status == 200
    first = fake.requests[-1]["messages"][0]
    assert first["role"] == "system"
    return str(first["content"])


async def byok(home: Path, *arguments: str) -> tuple[int, str]:
    """Run a command of that home; return its exit code and what it wrote."""
    env = {"BYOK_HOME": str(home)}
    done = await asyncio.to_thread(run_byok, *arguments, env=env)
    return done.returncode, done.stdout + done.stderr


async def reload(program: Program) -> None:
    assert (await program.ask(request(target=b"/byok/reload"))).status == 200


async def test_a_reload_takes_changed_prompts_and_keeps_them_from_broken_ones(
    home: Path, fake: FakeUpstream
) -> None:
    async with serving(home) as program:
        said = await system_of(program, fake)
        assert said.startswith("Mine, first.\n")
        assert "Mine, first." not in shipped_prompts().render("chat").text
        write(home, "Mine, second.")
        assert (await system_of(program, fake)) == said
        await reload(program)
        assert (await system_of(program, fake)).startswith("Mine, second.")

        write(home, BROKEN)
        code, told = await byok(home, "reload")
        assert code == 78
        assert TOLD in told
        assert (await system_of(program, fake)).startswith("Mine, second.")
        code, told = await byok(home, "status")
        assert code == 0
        assert TOLD in told
        code, told = await byok(home, "restart")
        assert code == 78
        assert TOLD in told
        assert (await system_of(program, fake)).startswith("Mine, second.")

        (home / "prompts" / "chat.md").unlink()
        await reload(program)
        shipped = await system_of(program, fake)
        assert "Mine" not in shipped.splitlines()[0]
        log = program.log_file.read_text()
    assert "prompt=own-chat@" in log
    assert f"the previous settings stay in use: {TOLD}" in log


async def test_a_broken_folder_ends_the_start_with_what_to_do(home: Path) -> None:
    write(home, BROKEN)
    (home / "prompts" / "agents.md").write_text("x")
    (home / "prompts" / "\x1b[2J\n.md").write_text("x")
    async with starting(home) as program:
        code, out, err = await program.ended()
    told = err.decode()
    assert (code, out) == (78, b"")
    assert TOLD in told
    assert "agents.md: no prompt has this name. Did you mean agent?" in told
    assert r"\x1b[2J\n.md: no prompt has this name." in told
    assert "byok prompts check" in told
    assert "\x1b" not in told
    assert "Traceback" not in told
