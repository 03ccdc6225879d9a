"""Machines of members of a team: what each has embedded."""

from collections.abc import Iterator
from pathlib import Path

from byok.search.vectors.recipe import is_embedded
from byok.search.vectors.store.listings import ListedKeys
from byok.search.vectors.store.store import VectorStore
from byok.search.vectors.team.transfer import Transfer
from tests.fakes.qdrant_members import Team
from tests.fakes.vectors import SPACE, Rows, keys, probe, vectors


class Machine:
    """A store of vectors beside an index with one blob for each text."""

    def __init__(self, home: Path, *texts: str) -> None:
        home.mkdir()
        rows = Rows(home / "data.db")
        ids = rows.add(*(f"{text}.py" for text in texts))
        self.rows, self.ids = rows, ids
        self.store = VectorStore(home / "vectors.db", rows.path)
        self.store.look(SPACE.recipe, is_embedded)
        self.space = self.store.enter(SPACE, probe())
        named = {i: [(0, key)] for i, key in zip(ids, keys(*texts), strict=True)}
        self.store.list_chunks(self.space, named)
        self.listed = ListedKeys(self.store.path, rows.path)
        self.goes_on: Iterator[bool] = iter(())  # told before each page; then True

    def embed(self, *texts: str) -> None:
        """Store the vectors of texts."""
        assert self.store.put(self.space, keys(*texts), vectors(texts)) == []

    def place(self, root: Path, *ids: int) -> None:
        """Put blobs into a workspace."""
        self.rows.run("INSERT INTO workspace(root) VALUES(?)", str(root))
        for blob_id in ids:
            self.rows.run(
                "INSERT INTO file SELECT w.id, ?, 1, 1, 1, 1, ?, NULL "
                "FROM workspace w WHERE w.root = ?",
                f"{blob_id}.py",
                blob_id,
                str(root),
            )

    def has(self, *texts: str) -> bool:
        """Tell whether the store has a vector of each text."""
        found = self.store.vectors_of(self.space, keys(*texts))
        return found.keys() == {*keys(*texts)}

    def transfer(self, team: Team, *, writes: bool = False) -> Transfer:
        """Return what a member of a team pushes and pulls with."""
        member = team.member(writes=writes, space=SPACE)
        member.use(SPACE, probe())
        return Transfer(
            member,
            self.store,
            self.space,
            self.listed,
            may_go_on=lambda: next(self.goes_on, True),
        )
