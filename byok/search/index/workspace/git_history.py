"""The commits of a workspace: read with git, which may run no program of it.

A repository is not trusted, and its configuration can make git start programs (hooks,
monitors, filters, pagers, transports, gpg). All of these are switched off, the settings
of system and user are not read, and nothing is fetched.
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
from byok.search.index.types import MAX_COMMIT_FILES, Commit, CommitHistory

_log = logging.getLogger(__name__)
MAX_COMMITS = 3000
MAX_MESSAGE_CHARS = 600
_LINKS = re.compile(
    r"https?://\S+|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+|\(?\B#[0-9]+\)?|\b[0-9a-f]{12,64}\b"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_TRAILER = re.compile(
    r"[A-Za-z][A-Za-z-]*-(?:by|id|to|url|link|change)\s*:"
    r"|(?:fix(?:es)?|close[sd]?|resolve[sd]?|refs?|cc|bug|issue)\s*:?\s*#?\d*\s*$",
    re.IGNORECASE,
)
_END_OF_TEXT = re.compile(
    r"(?:test plan|subscribers|tasks|differential revision|pull request resolved)\s*:"
    r"|reviewers?\b",
    re.IGNORECASE,
)
_ENOUGH_COMMITS = 5  # so many describe a file well enough
MAX_RENAMES = 50_000  # that are followed, in all commits together
_LOG_SECONDS = 30.0
_QUERY_SECONDS = 2.0  # a call that takes longer waits on a pipe without a writer
_LOG_BYTES = 64 * 2**20
_QUERY_BYTES = 2**16
_MAX_TIME = 253_402_300_799  # the end of the year 9999, the last one of `datetime`
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
    # No setting lifts this; older gits, which ignore the next line, need it.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
# Each record: empty, hash, time, message, empty, then its files up to the next record.
_FORMAT = "--format=tformat:%x00%H%x00%ct%x00%B%x00"
_LOG = (
    *("log", "-z", "--name-status", "--relative", "--no-merges"),
    # Exact renames only: git compares names of objects, and reads no content, which may
    # never have been fetched.
    *("-M100%", "--no-rename-empty"),
    *("--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--no-notes", "--ignore-submodules=all", "--encoding=UTF-8", _FORMAT),
    *("--no-mailmap", "-O/dev/null"),  # the repository could name these files
)
_COMMIT_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MAX_ADDRESS_CHARS = 500
_SCP = re.compile(r"(?:[^@/:\s]+@)?([^@/:\s]{2,}):(?!//)/*(\S+)")  # [user@]host:path
# A busy machine may leave git too little time; an unreadable repository stays so.
_MAX_FAILURES = 3


class Commits:
    """The git log of a workspace; runs in the event loop, reads in threads."""

    def __init__(self, workspace_id: int, root: Path, store: Store) -> None:
        self.history: CommitHistory | None = None
        self._id = workspace_id
        self._root = root
        self._store = store
        self._one_at_a_time = asyncio.Lock()
        self._marks: Marks | None = None  # None: nothing was read yet
        self._failures = 0

    async def read(self) -> None:
        """Read the git log if it has new commits."""
        async with self._one_at_a_time:
            marks = await asyncio.to_thread(self._current_marks)
            is_known = await self._read()
            self._failures = 0 if is_known else self._failures + 1
            # Empty marks differ from those of a repository: the next question retries.
            self._marks = marks if is_known or self._failures >= _MAX_FAILURES else ()

    async def are_new(self) -> bool:
        """Tell by `stat` calls whether there may be commits since the last read."""
        if self._marks is None or self._one_at_a_time.locked():
            return False
        return await asyncio.to_thread(self._current_marks) != self._marks

    def _current_marks(self) -> Marks:
        return marks_of(repository_of(self._root))

    async def _read(self) -> bool:
        """Read new commits; return whether git named the commit checked out."""
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


def read_history(
    root: Path,
    *,
    seconds: float = _LOG_SECONDS,
    max_bytes: int = _LOG_BYTES,
) -> CommitHistory | None:
    """Read the last commits that touched `root`.

    Return None without git, repository or commit, or if git refuses; the log says why.
    After `seconds`, or `max_bytes` of output, the newest commits so far are returned.
    """
    try:
        prefix, newest = _prefix_and_commit(root)
        # With a pathspec git simplifies the history, so only a subfolder has one.
        below = ["--", "."] if prefix else ["--"]
        command = [*_LOG, f"--max-count={MAX_COMMITS}", newest, *below]
        log = _run_git(command, root, seconds, max_bytes)
        commits = follow_renames([*_parse_log(log.output, whole=not log.problem)])
        if log.problem and not commits:
            raise _NoHistory(log.problem)
    except _NoHistory as error:
        _log.info("searching %s without its history: %s", root, error)
        return None
    if log.problem:
        _log.warning("the history of %s is incomplete: %s", root, log.problem)
    return CommitHistory(newest, commits)


def head(root: Path) -> str | None:
    """Return the commit that is checked out, or None; takes a few milliseconds."""
    try:
        return _prefix_and_commit(root)[1]
    except _NoHistory:
        return None


def repository_name_of(root: Path) -> str:
    """Return the name of the repository that a folder is in, "" if it has none.

    Runs git for a few milliseconds.
    """
    return repository_name(origin(root))


def repository_name(address: str) -> str:
    """Return host and path of a repository's address, such as host/owner/name.

    The name is the same for each way to clone: users, passwords, ports, `.git` and
    letter case do not count. It is "" for other addresses, such as a folder.
    """
    address = address.strip()
    if len(address) > _MAX_ADDRESS_CHARS or not address.isprintable():
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


def origin(root: Path) -> str:
    """Return the address that a repository was cloned from, "" if there is none."""
    command = ["config", "--local", "--no-includes", "--get", "remote.origin.url"]
    try:
        result = _run_git(command, root, _QUERY_SECONDS, _QUERY_BYTES)
    except _NoHistory:
        return ""
    return "" if result.problem else result.output.decode("utf-8", "replace").strip()


class _NoHistory(Exception):
    """There is no history; the message says why."""


class _GitOutput(NamedTuple):
    output: bytes
    problem: str


def _prefix_and_commit(root: Path) -> tuple[str, str]:
    """Return the path of a folder in its repository, and the commit checked out.

    git looks that commit up, so a file that blocks git, such as a pipe, does so in this
    call, which has a short timeout, and not in the log.
    """
    command = ["rev-parse", "--show-prefix", "--verify", "HEAD^{commit}"]
    result = _run_git(command, root, _QUERY_SECONDS, _QUERY_BYTES)
    if result.problem:
        raise _NoHistory(result.problem)
    prefix, _, name = result.output.decode("utf-8", "replace")[:-1].rpartition("\n")
    if not _COMMIT_NAME.fullmatch(name):
        raise _NoHistory("git did not name the commit")
    return prefix, name


def _run_git(
    command: list[str], root: Path, seconds: float, max_bytes: int
) -> _GitOutput:
    """Run git, and end it when it exceeds its time or output."""
    program = find_program("git", never=[root])
    if program is None:
        raise _NoHistory("git was not found")
    try:
        result = run_program(
            [program, *_SAFE, *command],
            clean_environment(_ENVIRONMENT),
            seconds=seconds,
            max_bytes=max_bytes,
            folder=root,
        )
    except (OSError, ValueError) as error:
        raise _NoHistory(f"git did not start ({error})") from error
    if result.was_late:
        return _GitOutput(result.out, f"git was not done in {seconds:g} s")
    if result.was_cut:
        return _GitOutput(result.out, f"git wrote more than {max_bytes} bytes")
    return _GitOutput(result.out, _explain_failure(result.exit_code, result.err))


def _explain_failure(code: int, stderr: bytes) -> str:
    if code == 0:
        return ""
    if b"dubious ownership" in stderr:
        return "the repository belongs to another user, so git does not read it"
    if b"not a git repository" in stderr:
        return "it is no git repository"
    return f"git failed (exit {code})"


class Rename(NamedTuple):
    """A file that a commit moved and left unchanged."""

    old: str
    new: str


class ReadCommit(NamedTuple):
    """A commit as git printed it, and the files that it moved."""

    commit: Commit
    renames: Sequence[Rename] = ()


def _parse_log(output: bytes, *, whole: bool) -> Iterator[ReadCommit]:
    """Yield the records of the log; not the last one, unless the output is `whole`."""
    fields = iter(output.split(b"\0"))
    pending: ReadCommit | None = None
    renames_left = MAX_RENAMES
    next(fields, None)  # the empty field before the first record
    while True:
        try:
            name, seconds, message = next(fields), next(fields), next(fields)
            next(fields)
        except StopIteration:
            break
        commit_name = name.decode("ascii", "replace")
        if not _COMMIT_NAME.fullmatch(commit_name):
            break
        if pending is not None:
            yield pending
        files, touched, renames = _parse_files(fields, renames_left)
        renames_left -= len(renames)
        commit = Commit(
            commit_name,
            min(int(seconds), _MAX_TIME) if seconds.isdigit() else 0,
            clean_message(message.decode("utf-8", "replace")),
            tuple(files),
            touched,
        )
        pending = ReadCommit(commit, renames)
    if pending is not None and whole:
        yield pending


def _parse_files(
    fields: Iterator[bytes], max_renames: int
) -> tuple[list[str], int, list[Rename]]:
    """Read the files of a record: the first paths, their total number, the renames.

    A moved file counts twice, as one that is gone and one that is new.
    """
    files: list[str] = []
    renames: list[Rename] = []
    touched = 0
    while status := next(fields, b""):
        # The first status stands on a line of its own.
        moved = status.removeprefix(b"\n").startswith(b"R")
        paths = [next(fields, b"") for _ in range(1 + moved)]
        decoded = [path.decode("utf-8", "backslashreplace") for path in paths]
        touched += len(decoded)
        files += decoded[: max(0, MAX_COMMIT_FILES - len(files))]
        if moved and len(renames) < max_renames:
            renames.append(Rename(*decoded))
    return files, touched, renames


def clean_message(message: str) -> str:
    """Return a message without links, numbers, trailers and code, cut to its limit."""
    cleaned: list[str] = []
    fenced = False
    for line in message[: 20 * MAX_MESSAGE_CHARS].split("\n"):
        # Spaces are joined first, so that the patterns need not allow for several.
        text = " ".join(_CONTROL.sub(" ", _LINKS.sub(" ", line)).split())
        if text.startswith("```"):
            fenced = not fenced
        elif fenced or (cleaned and line.startswith(("    ", "\t", ">", "|", "<"))):
            continue
        elif cleaned and _END_OF_TEXT.match(text):
            break
        elif text and not _TRAILER.match(text):
            cleaned.append(text)
    return "\n".join(cleaned)[:MAX_MESSAGE_CHARS]


def follow_renames(newest_first: Sequence[ReadCommit]) -> tuple[Commit, ...]:
    """Return the commits, each with the present paths of its files that moved later.

    So commits of a file from before it was moved count for its present path. A file
    with five commits under that path gets no more.
    """
    counts = Counter(
        path for commit, _ in newest_first if commit.telling for path in commit.files
    )
    present: dict[str, str] = {}  # by the path at the time of the current commit
    followed = []
    for commit, renames in newest_first:
        if present and commit.telling:
            moved = (present[path] for path in commit.files if path in present)
            if added := [path for path in moved if counts[path] < _ENOUGH_COMMITS]:
                files = tuple(dict.fromkeys((*commit.files, *added)))
                commit = commit._replace(files=files)
        followed.append(commit)
        # Change the keys to the paths from before this commit moved files.
        pairs = [(old, present.get(new, new)) for old, new in renames]
        for _, new in renames:
            present.pop(new, None)  # earlier, this path was another file's, or free
        present.update(pairs)
    return tuple(followed)
