"""What a question is about: the blobs that a client names, else declared workspaces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from byok.augment.blobs import BlobNames
from byok.context.contents import Entry
from byok.context.engine import ContextEngine
from byok.context.lexical import View
from byok.context.types import Phase
from byok.context.workspace import Workspace, total_view


@dataclass(frozen=True, slots=True)
class Scope:
    """The blobs in view, and the workspaces that hold them.

    `notes` say what is missing, in sentences; `named` that the client named blobs.
    Where there are several workspaces, paths begin with a label of theirs.
    """

    view: View
    workspaces: Sequence[Workspace]
    notes: list[str] = field(default_factory=list)
    unknown: Sequence[bytes] = ()
    checkpoint_found: bool = True
    named: bool = False

    def prefix_of(self, space: Workspace) -> str:
        """Return what stands before the paths of a workspace."""
        return f"{space.label}/" if len(self.workspaces) > 1 else ""

    def path_of(self, entry: Entry) -> str:
        """Return the path of a blob as answers show it."""
        space = self.space_of(entry) if len(self.workspaces) > 1 else None
        return self.prefix_of(space) + entry.path if space else entry.path

    def space_of(self, entry: Entry) -> Workspace | None:
        """Return the workspace that a blob is a file of, if it is one's."""
        for space in self.workspaces:
            if space.blob_of(entry.path) == entry.blob_id:
                return space
        return None

    def blob_of(self, path: str) -> int | None:
        """Return the blob in view that answers show under a path."""
        for space in self.workspaces:
            prefix = self.prefix_of(space)
            if path.startswith(prefix):
                found = space.blob_of(path.removeprefix(prefix))
                if found is not None and found in self.view.ids:
                    return found
        return None


async def scope_of(
    engine: ContextEngine, blobs: BlobNames, roots: Sequence[str]
) -> Scope:
    """Return what a request is about; `roots` narrow down the workspaces."""
    if not blobs.is_empty:
        return await _named(engine, blobs)
    spaces = [w for w in engine.workspaces if not roots or str(w.root) in roots]
    await engine.look(spaces)
    notes = [f"{w.root.name}: {w.note}." for w in spaces if w.note]
    return Scope(total_view(spaces, engine.store.index.chunks), spaces, notes)


async def _named(engine: ContextEngine, blobs: BlobNames) -> Scope:
    found = await engine.uploads.resolve(blobs.checkpoint, blobs.added, blobs.deleted)
    notes: list[str] = []
    if not found.checkpoint_found:
        notes.append(
            "The checkpoint that this client named is unknown to byok, so files are "
            "missing here: index the workspace again."
        )
    if found.unknown:
        notes.append(
            f"{len(found.unknown)} files of this workspace were not searched: they "
            "have not been uploaded."
        )
    if found.pending:
        notes.append(
            f"{found.pending} files were not searched: they are being indexed."
        )
    # The history of a workspace counts if most of these blobs are its files.
    near = [
        space
        for space in engine.workspaces
        if 2 * len(found.view.ids & space.ids()) > len(found.view.ids)
    ]
    await engine.look(near[:1])
    return Scope(
        found.view, near[:1], notes, found.unknown, found.checkpoint_found, named=True
    )


def is_usable(space: Workspace) -> bool:
    """Tell whether the index answers: complete, or so once and still mostly right."""
    if space.phase is Phase.COMPLETE:
        return True
    return space.built and 2 * space.waiting < space.tracked


def behind(scope: Scope) -> Iterator[str]:
    """Say of which workspaces the index is not up to date."""
    for space in scope.workspaces:
        if space.phase is Phase.INDEXING and space.waiting > 0 and not scope.named:
            yield (
                f"{space.waiting} changed files were not searched: they are being "
                "indexed."
            )


def nothing_to_search(scope: Scope) -> str:
    """Say that there is no code, and how to declare some."""
    if scope.notes:
        return "\n".join(["No code was found.", *scope.notes])
    return (
        "byok has no code to search yet: declare a workspace with "
        "`byok serve --workspace DIR` or `byok index add DIR`, or let the client "
        "index it. Use the file and search tools meanwhile."
    )
