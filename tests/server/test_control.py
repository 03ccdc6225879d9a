"""Settings taken anew, and the end of the daemon."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from byok.core.errors import BadRequest, ConfigError
from byok.server.control import Control, Source
from byok.settings import Settings, load_settings
from tests.fakes.patience import PATIENCE

LOOK = 0.02


class Used:
    """Notes the settings that were used, and refuses those of port 9999."""

    def __init__(self) -> None:
        self.ports: asyncio.Queue[int] = asyncio.Queue()

    async def __call__(self, settings: Settings) -> None:
        if settings.server.port == 9999:
            raise ConfigError("Not this one.")
        self.ports.put_nowait(settings.server.port)

    async def next(self) -> int:
        async with asyncio.timeout(PATIENCE):
            return await self.ports.get()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.fixture
def used() -> Used:
    return Used()


@pytest.fixture
def control(file: Path, used: Used) -> Control:
    control = Control(
        Source(file, lambda: load_settings(file)),
        Settings(),
        "me",
    )
    control.on_change(used)
    return control


def write(file: Path, text: str) -> None:
    file.write_text(text)
    file.chmod(0o600)


async def told(control: Control, *, is_wrong: bool = True) -> None:
    """Wait until an error of the settings is told, or none any more."""
    async with asyncio.timeout(PATIENCE):
        while bool(control.status()["error"]) is not is_wrong:
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def following(
    control: Control, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> AsyncIterator[None]:
    task = asyncio.ensure_future(control.follow(LOOK, sleep))
    try:
        yield
    finally:
        task.cancel()


@pytest.mark.parametrize("end", ["deleted", "emptied"])
async def test_config_file_that_is_lost_leaves_the_settings_in_force(
    control: Control, used: Used, file: Path, end: str
) -> None:
    """Its proxy and headers must not be dropped by accident."""
    async with following(control):
        write(file, "[server]\nport = 9001\n")
        assert await used.next() == 9001
        if end == "deleted":
            file.unlink()
        else:
            write(file, "")
        await told(control)
        assert "is gone or empty" in control.status()["error"]
        assert "restart byok" in control.status()["error"]
        assert used.ports.empty()
        write(file, "[server]\nport = 9002\n")
        assert await used.next() == 9002
        await told(control, is_wrong=False)


async def test_config_file_missing_at_restart_is_the_users_choice(
    file: Path, used: Used
) -> None:
    write(file, "[server]\nport = 9001\n")
    checked: list[int] = []
    source = Source(
        file,
        lambda: load_settings(file),
        lambda settings: checked.append(settings.server.port),
    )
    control = Control(source, load_settings(file), "me")
    control.on_change(used)
    file.unlink()
    with pytest.raises(ConfigError, match="gone or empty"):
        await control.reload()
    await control.stop("me", again=True)
    assert checked == [Settings().server.port]
    assert used.ports.empty()
    assert control.again


async def test_config_file_with_an_error_changes_nothing_until_corrected(
    control: Control, used: Used, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with following(control):
        write(file, "[server\n")
        await told(control)
        assert "is not valid TOML" in control.status()["error"]
        assert used.ports.empty()
        write(file, "[server]\nport = 9001\n")
        assert await used.next() == 9001
        await told(control, is_wrong=False)
    assert "the previous settings stay in use" in caplog.text


async def test_config_file_is_used_once_its_permissions_are_right(
    control: Control, used: Used, file: Path
) -> None:
    """That is the cure byok names, and changes no byte of the file."""
    async with following(control):
        file.write_text("[server]\nport = 9001\n")
        file.chmod(0o666)
        await told(control)
        assert "can be changed by other users" in control.status()["error"]
        file.chmod(0o600)
        assert await used.next() == 9001


async def test_config_file_that_is_still_being_written_is_not_read(
    control: Control, used: Used, file: Path
) -> None:
    """One that an editor is still filling would lack some settings."""
    looks: asyncio.Queue[None] = asyncio.Queue()
    go_on = asyncio.Semaphore(0)

    async def paused(seconds: float) -> None:
        looks.put_nowait(None)
        await go_on.acquire()

    async with following(control, paused):
        for size in (0, 10, 20):  # it has grown at each look
            await looks.get()
            write(file, "#" * size)
            go_on.release()
        await looks.get()
        assert used.ports.empty()
        go_on.release()  # it rests
        await looks.get()
        assert await used.next() == Settings().server.port


async def test_config_reload_reports_settings_that_cannot_be_used(
    control: Control, file: Path
) -> None:
    write(file, "[server]\nport = 9999\n")
    with pytest.raises(ConfigError, match="Not this one"):
        await control.reload()
    assert control.status() == {
        "file": str(file),
        "error": "Not this one.",
        "restart": [],
    }


async def test_config_reload_names_settings_that_need_a_restart(
    control: Control, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(
        file,
        "[server]\nport = 9001\n[limits]\nstreams = 3\n"
        '[chat]\ntop_p = 0.5\n[retrieval]\nrerank = "model"\n',
    )
    await control.reload()
    assert control.status()["restart"] == ["server.port", "limits.streams"]
    assert "need a restart: server.port, limits.streams" in caplog.text
    write(file, "[chat]\ntop_p = 0.5\n")
    await control.reload()
    assert control.status()["restart"] == []


async def test_stop_needs_the_identity_of_this_daemon(control: Control) -> None:
    with pytest.raises(BadRequest):
        await control.stop("another", again=False)
    assert not control.ending.is_set()
    await control.stop("me", again=False)
    assert control.ending.is_set()
    assert not control.again


async def test_restart_is_refused_with_options_that_no_longer_fit(
    file: Path,
) -> None:
    """A folder that `--workspace` named may be gone: byok would end for good."""

    def check(settings: Settings) -> None:
        raise ConfigError("There is no such folder.")

    source = Source(file, lambda: load_settings(file), check)
    control = Control(source, Settings(), "me")
    await control.reload()
    with pytest.raises(ConfigError, match="no such folder"):
        await control.stop("me", again=True)
    assert not control.ending.is_set()
    await control.stop("me", again=False)
    assert control.ending.is_set()


async def test_settings_that_are_saved_count_once(
    control: Control, used: Used, file: Path
) -> None:
    """The watcher does not take them again; the next change of an editor it does."""
    async with following(control):

        def save() -> bool:
            write(file, "[server]\nport = 9001\n")
            return True

        await control.save(save)
        assert await used.next() == 9001
        write(file, "[server]\nport = 9002\n")
        assert await used.next() == 9002
    assert used.ports.empty()


async def test_an_editors_change_counts_although_the_page_saves_nothing(
    control: Control, used: Used, file: Path
) -> None:
    """The page refuses to overwrite what it has not shown."""
    write(file, "[server]\nport = 9001\n")
    await control.save(lambda: False)
    async with following(control):
        assert await used.next() == 9001


async def test_a_change_whose_reader_left_is_taken_by_the_watcher(
    control: Control, used: Used, file: Path
) -> None:
    begun = asyncio.Event()

    async def hang(settings: Settings) -> None:
        begun.set()
        await asyncio.Event().wait()

    control.on_change(hang)
    write(file, "[server]\nport = 9001\n")
    reading = asyncio.ensure_future(control.reload())
    await asyncio.wait_for(begun.wait(), PATIENCE)
    reading.cancel()
    await asyncio.wait([reading])
    control.on_change(used)
    async with following(control):
        assert await used.next() == 9001


class Successors:
    """Counts the successors that were started; each loads until it may go on."""

    def __init__(self) -> None:
        self.count = 0
        self.begun, self.loaded = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        self.count += 1
        self.begun.set()
        await asyncio.wait_for(self.loaded.wait(), PATIENCE)


@pytest.fixture
def successors(control: Control) -> Successors:
    found = Successors()
    control.on_restart(found.start)
    return found


async def test_a_restart_for_settings_that_need_one_starts_one_successor(
    control: Control, successors: Successors, file: Path
) -> None:
    """The command reads the changed file, which asks for a restart by itself."""
    write(file, "[server]\nport = 9001\n")
    successors.loaded.set()
    await control.stop("me", again=True)
    await control.finish_restart()
    assert successors.count == 1


async def test_a_restart_is_finished_although_whoever_asked_has_left(
    control: Control, successors: Successors
) -> None:
    """Its successor would wait for ever, and begin when byok is to stop."""
    asked = asyncio.ensure_future(control.stop("me", again=True))
    await asyncio.wait_for(successors.begun.wait(), PATIENCE)
    asked.cancel()
    await asyncio.wait([asked])
    again = asyncio.ensure_future(control.stop("me", again=True))
    successors.loaded.set()
    await asyncio.wait_for(again, PATIENCE)
    assert successors.count == 1
    assert control.again and control.ending.is_set()


async def test_a_stop_during_a_restart_is_a_stop(
    control: Control, successors: Successors
) -> None:
    asked = asyncio.ensure_future(control.stop("me", again=True))
    await asyncio.wait_for(successors.begun.wait(), PATIENCE)
    await control.stop("me", again=False)
    successors.loaded.set()
    await asyncio.wait_for(asked, PATIENCE)
    assert control.ending.is_set() and not control.again
