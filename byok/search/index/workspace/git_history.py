"""The commits of a workspace: read with git, which may run no program of it.

A repository is not trusted, and its configuration can make git start programs (hooks,
monitors, filters, pagers, transports, gpg). All of these are switched off, the system's
and the user's configuration is not read, and nothing is fetched.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from byok.core.platform.programs import clean_environment, find_program, run_program
from byok.search.index.files.repository import Marks, marks_of, repository_of
from byok.search.index.store.schema import pack_history, unpack_history
from byok.search.index.store.store import Store
from byok.search.index.types import MOST_FILES, Commit, CommitHistory

# Cleans commit messages: no links, numbers, trailers or code.


LONGEST = 600
_LINKS = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+|\(?\B#[0-9]+\)?|\b[0-9a-f]{12,64}\b"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRAILER = re.compile(
    r"[A-Za-z][A-Za-z-]*-(?:by|id|to|url|link|change)\s*:"
    r"|(?:fix(?:es)?|close[sd]?|resolve[sd]?|refs?|cc|bug|issue)\s*:?\s*#?\d*\s*$",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?:test plan|subscribers|tasks|differential revision|pull request resolved)\s*:"
    r"|reviewers?\b",
    re.IGNORECASE,
)


def clean_message(message: str) -> str:
    """Return what a commit says: no links, numbers, trailers, code; 600 characters."""
    kept: list[str] = []
    fenced = False
    for line in message[: 20 * LONGEST].split("\n"):
        # Spaces are joined first: the patterns below need not count them.
        text = " ".join(_CONTROL.sub(" ", _LINKS.sub(" ", line)).split())
        if text.startswith("```"):
            fenced = not fenced
        elif fenced or (kept and line.startswith(("    ", "\t", ">", "|", "<"))):
            continue
        elif kept and _END.match(text):
            break
        elif text and not _TRAILER.match(text):
            kept.append(text)
    return "\n".join(kept)[:LONGEST]


# Commits of a file from before it was moved count for its present path.
#
# Only moves that leave the content as it is are known: git finds them by comparing the
# names of objects, without reading any, so also where contents were never fetched.


# A file with so many commits is described well enough.
_ENOUGH = 5
MOST_RENAMES = 50_000  # that are followed, of all commits together


class Rename(NamedTuple):
    """A file that a commit moved."""

    old: str
    new: str


class ReadCommit(NamedTuple):
    """A commit as git tells it, and what it moved."""

    commit: Commit
    renames: Sequence[Rename] = ()


def follow_renames(newest_first: Sequence[ReadCommit]) -> tuple[Commit, ...]:
    """Return the commits; present paths stand behind those that had another then.

    Files with five commits of their own get no more.
    """
    own = Counter(
        path for commit, _ in newest_first if commit.telling for path in commit.files
    )
    present: dict[str, str] = {}  # by the path at the time of the commit at hand
    followed = []
    for commit, renames in newest_first:
        if present and commit.telling:
            commit = _with_present_paths(commit, present, own)
        followed.append(commit)
        _go_back(present, renames)
    return tuple(followed)


def _with_present_paths(
    commit: Commit, present: dict[str, str], own: Counter[str]
) -> Commit:
    moved = (present[path] for path in commit.files if path in present)
    added = [path for path in moved if own[path] < _ENOUGH]
    if not added:
        return commit
    return commit._replace(files=tuple(dict.fromkeys((*commit.files, *added))))


def _go_back(present: dict[str, str], renames: Sequence[Rename]) -> None:
    """Make `present` right for the commits before one that moved files."""
    pairs = [(old, present.get(new, new)) for old, new in renames]
    for _, new in renames:
        present.pop(new, None)  # before, another file was there, or none
    present.update(pairs)


_log = logging.getLogger(__name__)

COMMITS = 3000
_SECONDS = 30.0
_QUICK = 2.0  # a call that takes longer waits on a pipe without a writer
_MOST_BYTES = 64 * 2**20
_BLOCK = 2**16
_LATEST = 253_402_300_799  # the end of the year 9999, as far as dates go

_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "log.showSignature=false"),
)
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",  # no setting lifts it; older gits fetch without the next
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
# Each record: empty, hash, time, message, empty, then its files up to the next record.
_FORMAT = "--format=tformat:%x00%H%x00%ct%x00%B%x00"
_LOG = (
    *("log", "-z", "--name-status", "--relative", "--no-merges"),
    # Exact renames: by the names of objects, whose contents may not be there.
    *("-M100%", "--no-rename-empty"),
    *("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-notes", "--ignore-submodules=all", "--encoding=UTF-8", _FORMAT),
    *("--no-mailmap", "-O/dev/null"),  # files that the repository names
)
_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def head(root: Path, *, git: str | None = None) -> str | None:
    """Return the commit that is checked out, or None; a few milliseconds."""
    try:
        return _place(root, git or _git(root))[1]
    except _RefusedError:
        return None


def origin(root: Path, *, git: str | None = None) -> str:
    """Return the address that a repository was cloned from, "" if there is none."""
    command = ["config", "--local", "--no-includes", "--get", "remote.origin.url"]
    try:
        ran = _run(git or _git(root), command, root, _QUICK, _BLOCK)
    except _RefusedError:
        return ""
    return "" if ran.trouble else ran.output.decode("utf-8", "replace").strip()


# The address of a repository, and its name for all who have it.


_LONGEST_ADDRESS = 500
_SCP = re.compile(r"(?:[^@/:\s]+@)?([^@/:\s]{2,}):(?!//)/*(\S+)")  # [user@]host:path


def repository_name(address: str) -> str:
    """Return host and path of a repository's address, such as host/owner/name.

    The same for each way to clone it: users, passwords, ports, `.git` and letter case
    do not count. "" for what is no address of another machine, such as a folder.
    """
    address = address.strip()
    if len(address) > _LONGEST_ADDRESS or not address.isprintable():
        return ""
    if "://" in address:
        try:
            parts = urlsplit(address)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return ""
        if parts.scheme not in ("http", "https", "ssh", "git", "git+ssh"):
            return ""
    elif match := _SCP.fullmatch(address):
        host, path = match.groups()
    else:
        return ""
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path}".lower() if host and path else ""


def repository_name_of(root: Path) -> str:
    """Return the name of the repository that a folder is in, "" if it has none.

    Runs git for a few milliseconds.
    """
    return repository_name(origin(root))


def read_history(
    root: Path,
    *,
    git: str | None = None,
    seconds: float = _SECONDS,
    most_bytes: int = _MOST_BYTES,
) -> CommitHistory | None:
    """Read the last commits that touched `root`.

    None where there is no git, no repository, no commit, or where git refuses; the log
    says why. What takes longer than `seconds` or is larger than `most_bytes` gives the
    newest part.
    """
    try:
        program = git or _git(root)
        prefix, newest = _place(root, program)
        # A pathspec makes git simplify the history: only where it leaves files out.
        below = ["--", "."] if prefix else ["--"]
        command = [*_LOG, f"--max-count={COMMITS}", newest, *below]
        ran = _run(program, command, root, seconds, most_bytes)
        commits = follow_renames([*_commits(ran.output, whole=not ran.trouble)])
        if ran.trouble and not commits:
            raise _RefusedError(ran.trouble)
    except _RefusedError as refused:
        _log.info("searching %s without its history: %s", root, refused)
        return None
    if ran.trouble:
        _log.warning("the history of %s is incomplete: %s", root, ran.trouble)
    return CommitHistory(newest, commits)


class _RefusedError(Exception):
    """There is no history; the message says why."""


class _Ran(NamedTuple):
    output: bytes
    trouble: str


def _git(root: Path) -> str | None:
    return find_program("git", never=[root])


def _place(root: Path, program: str | None) -> tuple[str, str]:
    """Return where in its repository a folder is, and the commit checked out.

    That commit is looked up: so every file of git's that may hinder the log does so
    here, where little time is given.
    """
    command = ["rev-parse", "--show-prefix", "--verify", "HEAD^{commit}"]
    ran = _run(program, command, root, _QUICK, _BLOCK)
    if ran.trouble:
        raise _RefusedError(ran.trouble)
    prefix, _, name = ran.output.decode("utf-8", "replace")[:-1].rpartition("\n")
    if not _NAME.fullmatch(name):
        raise _RefusedError("git did not name the commit")
    return prefix, name


def _run(
    program: str | None, command: list[str], root: Path, seconds: float, most: int
) -> _Ran:
    """Run git, which ends at its limits of time and output."""
    if program is None:
        raise _RefusedError("git was not found")
    try:
        ended = run_program(
            [program, *_SAFE, *command],
            clean_environment(_ENVIRONMENT),
            seconds=seconds,
            max_bytes=most,
            folder=root,
        )
    except (OSError, ValueError) as error:
        raise _RefusedError(f"git did not start ({error})") from error
    if ended.was_late:
        return _Ran(ended.out, f"git was not done in {seconds:g} s")
    if ended.was_cut:
        return _Ran(ended.out, f"git wrote more than {most} bytes")
    return _Ran(ended.out, _trouble(ended.exit_code, ended.err))


def _trouble(code: int, said: bytes) -> str:
    if code == 0:
        return ""
    if b"dubious ownership" in said:
        return "the repository belongs to another user, so git does not read it"
    if b"not a git repository" in said:
        return "it is no git repository"
    return f"git failed (exit {code})"


def _commits(output: bytes, *, whole: bool) -> Iterator[ReadCommit]:
    """Read the records; the last of an output that breaks off is left out."""
    fields = iter(output.split(b"\0"))
    made: ReadCommit | None = None
    room = MOST_RENAMES
    next(fields, None)  # what is before the first record
    while True:
        try:
            name, seconds, message = next(fields), next(fields), next(fields)
            next(fields)
        except StopIteration:
            break
        commit = name.decode("ascii", "replace")
        if not _NAME.fullmatch(commit):
            break
        if made is not None:
            yield made
        files, touched, renames = _files(fields, room)
        room -= len(renames)
        read = Commit(
            commit,
            min(int(seconds), _LATEST) if seconds.isdigit() else 0,
            clean_message(message.decode("utf-8", "replace")),
            tuple(files),
            touched,
        )
        made = ReadCommit(read, renames)
    if made is not None and whole:
        yield made


def _files(
    fields: Iterator[bytes], most_renames: int
) -> tuple[list[str], int, list[Rename]]:
    """Read the files of a record: the first paths, how many there are, what moved.

    A file that moved counts twice: one is gone and one is new.
    """
    files: list[str] = []
    renames: list[Rename] = []
    touched = 0
    while status := next(fields, b""):
        # The first status stands on a line of its own.
        moved = status.removeprefix(b"\n").startswith(b"R")
        paths = [next(fields, b"") for _ in range(1 + moved)]
        named = [path.decode("utf-8", "backslashreplace") for path in paths]
        touched += len(named)
        files += named[: max(0, MOST_FILES - len(files))]
        if moved and len(renames) < most_renames:
            renames.append(Rename(*named))
    return files, touched, renames


# Keeps the commits of one workspace up to date.


# A busy machine may leave git too little time; an unreadable repository stays so.
_TRIES = 3


class Commits:
    """The git log of a workspace; runs in the event loop, reads in threads."""

    def __init__(self, workspace_id: int, root: Path, store: Store) -> None:
        self.history: CommitHistory | None = None
        self._id = workspace_id
        self._root = root
        self._store = store
        self._one_at_a_time = asyncio.Lock()
        self._marks: Marks | None = None  # none: nothing was read yet
        self._failures = 0

    async def read(self) -> None:
        """Read the git log if it has new commits."""
        async with self._one_at_a_time:
            marks = await asyncio.to_thread(self._marks_now)
            known = await self._read()
            self._failures = 0 if known else self._failures + 1
            # Without marks of a repository the next question tries again.
            self._marks = marks if known or self._failures >= _TRIES else ()

    async def are_new(self) -> bool:
        """Tell whether there may be new commits since the last read (`stat` calls)."""
        if self._marks is None or self._one_at_a_time.locked():
            return False
        return await asyncio.to_thread(self._marks_now) != self._marks

    def _marks_now(self) -> Marks:
        return marks_of(repository_of(self._root))

    async def _read(self) -> bool:
        """Read what is new; return whether git named the commit checked out."""
        commit = await asyncio.to_thread(head, self._root)
        if commit is None:
            return False
        if self.history and self.history.head == commit:
            return True
        with self._store.reading() as db:
            row = db.execute(
                "SELECT history FROM workspace WHERE id = ? AND head = ?",
                (self._id, commit),
            ).fetchone()
        if row and row[0]:
            self.history = await asyncio.to_thread(unpack_history, row[0])
            return True
        history = await asyncio.to_thread(read_history, self._root)
        self.history = history
        if history is not None:
            packed = await asyncio.to_thread(pack_history, history)
            self._store.change(
                lambda db: db.execute(
                    "UPDATE workspace SET head = ?, history = ? WHERE id = ?",
                    (commit, packed, self._id),
                )
            )
        return True
