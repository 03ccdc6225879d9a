from pathlib import Path

from byok.search.vectors.estimate import count_chunks, tokens_of
from tests.fakes.engines import complete, engine, project


async def test_chunks_of_code_and_configuration_are_counted(tmp_path: Path) -> None:
    root = project(
        tmp_path / "zoo",
        lion__py="def lion():\n    return 1\n" * 200,
        app__yaml="a: 1\n",
        README__md="lion\n",
        empty__py="",
    )
    async with engine(tmp_path / "e", root) as made:
        await complete(made)
        lion = made.contents.entries(made.workspaces[0].ids())
        spans = [len(e.spans) for e in lion.values() if e.path != "README.md"]
        assert sum(spans) > 2
        assert count_chunks(made.store) == sum(spans)


def test_tokens_grow_with_chunks() -> None:
    assert tokens_of(0) == 0
    assert tokens_of(20) == 10 * tokens_of(2) > 0
