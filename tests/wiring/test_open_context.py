"""Settings become an open code context."""

from pathlib import Path

from byok.core.platform.paths import find_paths
from byok.settings import load_settings
from byok.wiring.services import open_context


async def test_open_context_follows_workspaces_of_settings_and_command_line(
    tmp_path: Path,
) -> None:
    paths = find_paths()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = str(tmp_path / "one"), tmp_path / "two"
    settings = load_settings(paths.config, {"context": {"workspaces": [one]}})
    async with open_context(settings, paths, [two]) as context:
        status = await context.status()
    assert [space.root for space in status.workspaces] == [one, str(two)]


async def test_open_context_without_workspaces_makes_no_file(tmp_path: Path) -> None:
    del tmp_path
    paths = find_paths()
    async with open_context(load_settings(paths.config, {}), paths) as context:
        status = await context.status()
    assert status.state == "standby"
    assert not paths.database.exists()
