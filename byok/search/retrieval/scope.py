"""Select the scope of a question: the blobs that its client names, or workspaces.

Code of one project must never appear in another. So a question that names neither
blobs nor workspaces is searched in the workspaces whose path it mentions, else in those
that its client has open, else in the only one there is.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from byok.core.code_query import BlobNames
from byok.search.index.contents import Entry
from byok.search.index.engine import ContextEngine
from byok.search.index.store.chunk_index import View
from byok.search.index.types import Phase
from byok.search.index.workspace.workspace import Workspace, total_view

_AMBIGUOUS_NOTE = (
    "Several folders are indexed here, and this request does not say which one it is "
    "about: ask again with the absolute path of your workspace, or of a file in it, in "
    "the request."
)
_NOT_INDEXED_NOTE = (
    "{} is open in the editor, but none of the folders that are indexed here has to do "
    "with it: `byok index add DIR` adds one. Use the file and search tools meanwhile."
)


class Scope(Struct, frozen=True):
    """The blobs to search, and the workspaces that they belong to.

    `notes` are sentences about missing files; `has_named_blobs` says that the client
    named the blobs. `unknown` are names of blobs that are not stored here. With several
    workspaces, each path begins with the label of its workspace.
    """

    view: View
    workspaces: Sequence[Workspace]
    notes: list[str] = field(default_factory=list)
    unknown: Sequence[bytes] = ()
    checkpoint_found: bool = True
    has_named_blobs: bool = False

    def prefix_of(self, space: Workspace) -> str:
        """Return the prefix of a workspace's paths, "" if it is the only one."""
        return f"{space.label}/" if len(self.workspaces) > 1 else ""

    def path_of(self, entry: Entry) -> str:
        """Return the path of a blob as answers show it."""
        return next(iter(self.paths_of(entry)), entry.path)

    def paths_of(self, entry: Entry) -> list[str]:
        """Return all paths of a blob: several workspaces may have the same file."""
        return [self.prefix_of(space) + entry.path for space in self.spaces_of(entry)]

    def spaces_of(self, entry: Entry) -> list[Workspace]:
        """Return the workspaces whose searched files include a blob.

        A file of nested workspaces belongs to the outer one only.
        """
        return [
            space
            for space in self.workspaces
            if entry.blob_id in space.searched_blobs(entry.path)
            and not any(
                outer.blob_of(prefix + entry.path)
                for outer, prefix in outer_workspaces(space, self.workspaces)
            )
        ]

    def blob_of(self, path: str) -> int | None:
        """Return the blob in view that answers show with this path."""
        for space in self.workspaces:
            prefix = self.prefix_of(space)
            if path.startswith(prefix):
                blob_id = space.blob_of(path.removeprefix(prefix))
                if blob_id is not None and blob_id in self.view.ids:
                    return blob_id
        return None


async def select_scope(
    engine: ContextEngine,
    blobs: BlobNames,
    roots: Sequence[str],
    question: str = "",
    folders: Sequence[str] = (),
) -> Scope:
    """Select the scope of a request.

    `roots` are the workspaces that it names, `folders` those that its client has open.
    """
    if not blobs.is_empty:
        return await _resolve_blobs(engine, blobs)
    workspaces = engine.workspaces
    if roots:
        spaces = [space for space in workspaces if str(space.root) in roots]
    else:
        spaces = _workspaces_about(workspaces, question, folders)
        if workspaces and not spaces:
            note = _NOT_INDEXED_NOTE.format(folders[0]) if folders else _AMBIGUOUS_NOTE
            return Scope(total_view((), 0), (), [note])
    await engine.detect_changes(spaces)
    view = total_view(spaces, engine.store.index.chunks)
    ids_by_space = {space.id: _ids_without_outer(space, spaces) for space in spaces}
    view = view._replace(ids=frozenset().union(*ids_by_space.values()))
    # A workspace whose files all belong to outer ones is not searched by itself.
    spaces = [space for space in spaces if ids_by_space[space.id] or not space.ids()]
    notes = [engine.store.damage_note] if engine.store.damage_note else []
    notes += [f"{w.root.name}: {w.status.note}." for w in spaces if w.status.note]
    return Scope(view, spaces, notes)


def _workspaces_about(
    spaces: Sequence[Workspace], question: str, folders: Sequence[str]
) -> list[Workspace]:
    """Return the workspaces that a question without `roots` is about."""
    mentioned = [space for space in spaces if _mentions(question, space)]
    if mentioned:
        return mentioned
    if folders:
        usable = [f for f in folders if Path(f).is_absolute() and "\0" not in f]
        opened = [Path(os.path.realpath(folder)) for folder in usable]
        return [w for w in spaces if any(_is_nested(w.root, f) for f in opened)]
    return list(spaces) if _are_nested(spaces) else []


def _is_nested(folder: Path, other: Path) -> bool:
    return folder.is_relative_to(other) or other.is_relative_to(folder)


def _are_nested(spaces: Sequence[Workspace]) -> bool:
    """Tell whether one workspace contains all others."""
    return not spaces or any(
        all(space.root.is_relative_to(outer.root) for space in spaces)
        for outer in spaces
    )


def _mentions(question: str, space: Workspace) -> bool:
    """Tell whether a question contains the path of a workspace or of a file in it."""
    root = re.escape(str(space.root))
    return re.search(rf"(?<![\w./-]){root}(?![\w-]|\.\w)", question) is not None


def remove_roots(question: str, scope: Scope) -> str:
    """Return a question without the paths of workspaces, which are not search terms."""
    for space in scope.workspaces:
        question = question.replace(str(space.root), " ")
    return question


def outer_workspaces(
    space: Workspace, spaces: Iterable[Workspace]
) -> list[tuple[Workspace, str]]:
    """Return the workspaces around `space`, with the prefix of its files in each."""
    return [
        (outer, f"{space.root.relative_to(outer.root).as_posix()}/")
        for outer in spaces
        if outer is not space and space.root.is_relative_to(outer.root)
    ]


def _ids_without_outer(space: Workspace, spaces: Sequence[Workspace]) -> frozenset[int]:
    """Return the blobs of a workspace's files that no outer workspace has."""
    outer = outer_workspaces(space, spaces)
    if not outer:
        return space.ids()
    return frozenset().union(
        *(
            space.searched_blobs(path)
            for path in space.paths()
            if not any(other.blob_of(prefix + path) for other, prefix in outer)
        )
    )


async def _resolve_blobs(engine: ContextEngine, blobs: BlobNames) -> Scope:
    result = await engine.uploads.resolve(blobs)
    notes: list[str] = []
    if not result.checkpoint_found:
        notes.append(
            "The checkpoint that this client named is unknown to byok, so files are "
            "missing here: index the workspace again."
        )
    if result.unknown:
        notes.append(
            f"{len(result.unknown)} files of this workspace were not searched: they "
            "have not been uploaded."
        )
    if result.pending:
        notes.append(
            f"{result.pending} files were not searched: they are being indexed."
        )
    # The commit history of a workspace is used if most of these blobs are its files.
    main_spaces = [
        space
        for space in engine.workspaces
        if 2 * len(result.view.ids & space.ids()) > len(result.view.ids)
    ]
    await engine.detect_changes(main_spaces[:1])
    return Scope(
        result.view,
        main_spaces[:1],
        notes,
        result.unknown,
        result.checkpoint_found,
        has_named_blobs=True,
    )


def stale_notes(scope: Scope) -> Iterator[str]:
    """Yield a note for each workspace with changed files that are still to be indexed.

    There is none if the client named the blobs, because these are what is searched.
    """
    for space in scope.workspaces:
        status = space.status
        indexing = status.phase is Phase.INDEXING and status.waiting > 0
        if indexing and not scope.has_named_blobs:
            yield (
                f"{status.waiting} new or changed files are being indexed: what is new "
                "in them is not found yet."
            )


def empty_answer(scope: Scope) -> str:
    """Return the answer for a scope without code, and how to add some."""
    if scope.notes:
        return "\n".join(["No code was found.", *scope.notes])
    return (
        "byok has no code to search yet: declare a workspace with "
        "`byok serve --workspace DIR` or `byok index add DIR`, or let the client "
        "index it. Use the file and search tools meanwhile."
    )
