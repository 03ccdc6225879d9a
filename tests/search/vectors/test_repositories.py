from collections.abc import Iterable
from pathlib import Path

from byok.search.vectors.team.repository import Repositories
from tests.fakes.engines import complete, engine, project


async def test_a_blob_has_the_repositories_of_its_workspaces(tmp_path: Path) -> None:
    zoo = project(tmp_path / "zoo", lion__py="lion", both__py="both")
    farm = project(tmp_path / "farm", both__py="both")
    asked: list[str] = []

    def names_of(given: Iterable[Path]) -> list[str]:
        roots = list(given)
        asked.extend(root.name for root in roots)
        return [f"host/{root.name}" for root in roots]

    async with engine(tmp_path / "e", zoo, farm) as made:
        await complete(made)
        found = Repositories(made, names_of)
        first, _ = made.workspaces
        lion, both = (first.blob_of(path) for path in ("lion.py", "both.py"))
        assert lion
        assert both
        assert found.of_blob(both) == []  # not asked yet
        await found.look()
        await found.look()
        assert found.of_blob(both) == ["host/zoo", "host/farm"]
        assert found.of_blob(lion) == ["host/zoo"]
        assert found.of_blob(10**6) == []
        assert asked == ["zoo", "farm"]


async def test_a_folder_without_a_repository_has_no_name(tmp_path: Path) -> None:
    root = project(tmp_path / "zoo", lion__py="lion")
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        found = Repositories(made)
        await found.look()
        lion = made.workspaces[0].blob_of("lion.py")
        assert lion
        assert found.of_blob(lion) == []
