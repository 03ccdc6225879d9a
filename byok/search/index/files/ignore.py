"""Ignore rules of a workspace: one decision for the walk, the watcher and ripgrep.

Order: secret names, then `.gitignore` and `.augmentignore` of every folder, ignore
files outside the workspace (`rules_outside`), then generated files. A deeper folder
wins over a higher one, `.augmentignore` over `.gitignore`, a later line over an earlier
one. All paths below an ignored folder are ignored.
"""

import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from byok.core.bounded import SaidOnce
from byok.core.code_query import ExcludingRule
from byok.core.platform.programs import clean_environment, find_program, run_program
from byok.search.index.files.gitignore import Patterns, pattern_lines
from byok.search.index.files.repository import (
    is_other_work_tree,
    load,
    repository_of,
)
from byok.search.index.files.roots import OwnFolders
from byok.search.index.files.secret_names import is_private, is_secret, normalise_name
from byok.search.index.types import IndexOptions, SkipReason

_log = logging.getLogger(__name__)
IGNORE_FILES = (".gitignore", ".augmentignore")
_GIT_SECONDS = 5.0
_EXCLUDES_COMMAND = ("config", "--global", "--type=path", "--get", "core.excludesFile")
_HOME_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "USERPROFILE")
_MAX_BYTES = 64 * 1024
_MAX_LINES = 1_000
_MAX_LINE_CHARS = 1_000
_MAX_LINES_IN_FORCE = 4_000  # that apply to one folder
_MAX_LINES_IN_ALL = 50_000  # of a workspace; compiling them takes seconds
_MAX_FOLDERS = 100_000  # cached
_TOO_LONG = (
    f"is too long: only {_MAX_LINES:,} lines of up to {_MAX_LINE_CHARS:,} characters,"
    f" {_MAX_BYTES // 1024} KiB in all, count"
)
# Files that programs write, and nobody reads as code. These are the weakest rules:
# `!*.log` in an ignore file lifts such a line. Names that people also give to their own
# folders (dist, target) only count at the root.
_NOISE = """
node_modules/ bower_components/ .yarn/cache/ .pnpm-store/
__pycache__/ .venv/ venv/ .tox/ .nox/ .eggs/ *.egg-info/ .ipynb_checkpoints/
.mypy_cache/ .ruff_cache/ .pytest_cache/ .hypothesis/ .direnv/ htmlcov/ .nyc_output/
.gradle/ .next/ .nuxt/ .svelte-kit/ .parcel-cache/ .turbo/ .dart_tool/
/dist/ /target/ .DS_Store Thumbs.db
*.log *.log.[0-9]* *.log-[0-9]* *.pid *.tmp *.temp *.swp *.swo *~ *.bak *.orig *.rej
"""
NOISE = tuple(_NOISE.split())

# The patterns that apply to a folder, the strongest first. Each matches paths of its
# ignore file's folder: a prefix, and the workspace's path from an offset on.
_Chain = tuple[tuple[Patterns, str, int], ...]


class Outside(NamedTuple):
    """An ignore file outside; `below` is the workspace's path in that file's folder."""

    name: str
    content: bytes
    below: str


class FolderRules:
    """The rules that apply to the names in one folder."""

    __slots__ = ("_parent", "_prefix", "_private", "_rules", "chain", "reason")

    def __init__(
        self,
        rules: "Rules",
        path: str,
        chain: _Chain = (),
        reason: SkipReason | None = None,
    ) -> None:
        self.chain = chain
        self.reason = reason  # why the folder itself is skipped
        self._rules = rules
        self._prefix = f"{path}/" if path else ""
        self._parent = normalise_name(path.rpartition("/")[2].casefold())
        # Whether this is a private folder, which the user allowed.
        self._private = is_secret(path, is_dir=True)

    def judge(self, name: str, *, is_dir: bool) -> SkipReason | None:
        """Return why a name in this folder is skipped, or None."""
        if self.reason:
            return self.reason
        path = self._prefix + name
        rules = self._rules
        plain = normalise_name(name.casefold())
        is_suspect = self._private or is_private(self._parent, plain, is_dir=is_dir)
        if is_suspect and is_secret(path, rules.allow_secret, is_dir=is_dir):
            return SkipReason.SECRET
        if is_dir and rules.is_own(path):
            return SkipReason.SECRET
        for patterns, prefix, start in self.chain:
            verdict = patterns.verdict(prefix + path[start:], is_dir=is_dir)
            if verdict is not None:
                if verdict:
                    return SkipReason.IGNORED
                break
        if is_dir:
            return SkipReason.WORK_TREE if rules.is_work_tree(path) else None
        if not rules.extensions:
            return None
        has_extension = name.casefold().endswith(rules.extensions)
        return None if has_extension else SkipReason.EXTENSION

    def explain(self, name: str, reason: SkipReason, *, is_dir: bool) -> ExcludingRule:
        """Return the rule by which a name in this folder is skipped, and its cure."""
        path, end = self._prefix + name, "/" if is_dir else ""
        if reason is SkipReason.WORK_TREE:
            return ExcludingRule()
        if reason is SkipReason.EXTENSION:
            return ExcludingRule(cure=Path(name).suffix, place="context.extensions")
        if reason is SkipReason.SECRET:
            cure = f"/{_escape(path)}{end}"
            is_never_allowed = is_secret(path, (cure,), is_dir=is_dir) or (
                is_dir and self._rules.is_own(path)
            )
            if is_never_allowed:
                return ExcludingRule()
            return ExcludingRule(cure=cure, place="context.allow_secret")
        for patterns, prefix, start in self.chain:
            index = patterns.index_of(prefix + path[start:], is_dir=is_dir)
            if index is not None:
                return ExcludingRule(
                    patterns.lines[index],
                    patterns.name,
                    self._rules.line_number(patterns.name, patterns.lines[index]),
                    f"!/{_escape(path[start:])}{end}",
                    path[:start] + IGNORE_FILES[-1],
                )
        return ExcludingRule()


class Rules:
    """The rules of one workspace; those of each folder are cached.

    `load` returns the content of a workspace's file, or None; `outside` the ignore
    files elsewhere, the strongest last. `allow_secret` are the user's patterns (as in
    .gitignore) that lift secret names. `is_own` recognises byok's folders below the
    root, `is_work_tree` other work trees of the same repository. With `extensions` only
    files with these are indexed. Any thread may call this.
    """

    def __init__(
        self,
        load: Callable[[str], bytes | None],
        *,
        outside: Callable[[], Sequence[Outside]] = tuple,
        allow_secret: Iterable[str] = (),
        extensions: Iterable[str] = (),
        is_own: Callable[[str], bool] = lambda path: False,
        is_work_tree: Callable[[str], bool] = lambda path: False,
        noise: Iterable[str] = NOISE,
    ) -> None:
        self.allow_secret = tuple(allow_secret)
        self.is_own = is_own
        self.is_work_tree = is_work_tree
        self.extensions = tuple(
            "." + extension.lstrip("*.").casefold() for extension in extensions
        )
        self._load = load
        self._outside = outside
        self._noise = Patterns(noise)
        self._folders: dict[str, FolderRules] = {}
        self._lines = 0
        self._logged = SaidOnce(_MAX_LINES)
        # Which part of an ignore file does not count, by its path.
        self.notes: dict[str, str] = {}

    def reason(self, path: str, *, is_dir: bool = False) -> SkipReason | None:
        """Return why a path is skipped, by itself or by a folder above, or None."""
        parent, _, name = path.rpartition("/")
        return self.folder(parent).judge(name, is_dir=is_dir)

    def find_rule(self, path: str, *, is_dir: bool = False) -> ExcludingRule:
        """Return the rule that excludes a path, or the first of its folders."""
        parent, parts = "", path.split("/")
        for count, name in enumerate(parts, 1):
            judged = {"is_dir": is_dir or count < len(parts)}
            folder = self.folder(parent)
            if reason := folder.judge(name, **judged):
                return folder.explain(name, reason, **judged)
            parent = "/".join(parts[:count])
        return ExcludingRule()

    def line_number(self, file: str, line: str) -> int:
        """Return the number of a line in an ignore file, 0 for byok's own rules."""
        contents = (rules.content for rules in self._outside() if rules.name == file)
        content = self._load(file) if file else None
        text = (content or next(contents, b"")).removeprefix(b"\xef\xbb\xbf")
        lines = text.decode("utf-8", "surrogateescape").split("\n")
        numbers = [n for n, text in enumerate(lines, 1) if text.rstrip("\r") == line]
        return numbers[-1] if numbers else 0

    def folder(self, path: str, names: Collection[str] | None = None) -> FolderRules:
        """Return the rules of a folder; "" is the root.

        `names` are the known names in the folder, which save a search for ignore files.
        """
        folders = self._folders  # `forget` replaces this dictionary
        cached = folders.get(path)
        if cached is not None:
            return cached
        if len(folders) >= _MAX_FOLDERS:
            folders.clear()
        above = ""
        current = folders.get(above)
        if current is None:
            current = folders[above] = self._root(names if above == path else None)
        for part in path.split("/") if path else ():
            above = f"{above}/{part}" if above else part
            below = folders.get(above)
            if below is None:
                if reason := current.judge(part, is_dir=True):
                    below = FolderRules(self, above, reason=reason)
                else:
                    known = names if above == path else None
                    chain = self._with_files(current.chain, f"{above}/", known)
                    below = FolderRules(self, above, chain)
                folders[above] = below
            current = below
        return current

    def forget(self, folder: str) -> None:
        """Remove the cached rules of a folder and of all folders below it."""
        below = f"{folder}/"
        self._lines = 0
        self._folders = {
            path: rules
            for path, rules in list(self._folders.items())
            if folder and path != folder and not path.startswith(below)
        }
        self.notes = {
            path: note
            for path, note in list(self.notes.items())
            if folder and not path.startswith(below)
        }

    def notes_on(self, path: str) -> list[str]:
        """Return notes on the ignore files above a path, parts of which do not count.

        They are sentences without a full stop, and exist only for ignore files that
        were read, as `reason` does.
        """
        return [
            note
            for name, note in list(self.notes.items())
            if Path(name).is_absolute() or path.startswith(name[: name.rfind("/") + 1])
        ]

    def _root(self, names: Collection[str] | None) -> FolderRules:
        chain: _Chain = ((self._noise, "", 0),)
        outer: _Chain = ()
        for name, content, workspace_path in self._outside():
            outer = self._append_rules(
                outer, name, content, f"{workspace_path}/" if workspace_path else "", 0
            )
        if not _ignores_workspace(outer):
            chain = (*outer, *chain)
        return FolderRules(self, "", self._with_files(chain, "", names))

    def _with_files(
        self, chain: _Chain, prefix: str, names: Collection[str] | None
    ) -> _Chain:
        for name in IGNORE_FILES:
            if names is None or name in names:
                path = prefix + name
                if content := self._load(path):
                    chain = self._append_rules(chain, path, content, "", len(prefix))
        return chain

    def _append_rules(
        self, chain: _Chain, path: str, content: bytes, prefix: str, start: int
    ) -> _Chain:
        lines, is_complete = _bounded_lines(content)
        if not is_complete:
            self._add_note(path, _TOO_LONG)
        in_force = len(lines) + sum(len(patterns) for patterns, _, _ in chain)
        self._lines += len(lines)
        if in_force > _MAX_LINES_IN_FORCE or self._lines > _MAX_LINES_IN_ALL:
            self._add_note(path, "is left out: too many rules in this workspace")
            return chain
        patterns = Patterns(lines, path)
        if patterns.unreadable:
            examples = ", ".join(ascii(line[:60]) for line in patterns.unreadable[:3])
            count = len(patterns.unreadable)
            self._add_note(path, f"has {count} lines that byok cannot read: {examples}")
        return ((patterns, prefix, start), *chain) if len(patterns) else chain

    def _add_note(self, path: str, problem: str) -> None:
        """Add a note on an ignore file, and log it once."""
        if path in self.notes or len(self.notes) < _MAX_LINES:
            self.notes[path] = f"the ignore file {path!a} {problem}"
        if self._logged.is_new(path):
            _log.warning("%s", self.notes[path])


def rules_of(root: Path, options: IndexOptions) -> Rules:
    """Return the ignore rules of a workspace; byok's own folders are skipped."""
    own = OwnFolders(options.own_folders)
    return Rules(
        partial(load, root),
        outside=partial(rules_outside, root),
        allow_secret=options.allow_secret,
        extensions=options.extensions,
        is_own=lambda path: own.include(f"{root}/{path}"),
        is_work_tree=lambda path: is_other_work_tree(f"{root}/{path}", root),
    )


def _escape(path: str) -> str:
    """Return the pattern that matches only this path."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


def _ignores_workspace(outer: _Chain) -> bool:
    """Tell whether rules from outside ignore the workspace itself.

    As the user added it nevertheless, they are not applied to its files.
    """
    workspace_path = max((prefix for _, prefix, _ in outer), key=len, default="")
    ends = [index for index, letter in enumerate(workspace_path) if letter == "/"]
    for end in ends:  # from the top down, as git asks
        for patterns, prefix, _ in outer:
            above = len(workspace_path) - len(prefix)
            if end > above:
                verdict = patterns.verdict(workspace_path[above:end], is_dir=True)
                if verdict is not None:
                    if verdict:
                        return True
                    break
    return False


def _bounded_lines(content: bytes) -> tuple[list[str], bool]:
    """Return the lines that count, and whether these are all."""
    read = content
    if len(content) > _MAX_BYTES:
        read = content[: content.rfind(b"\n", 0, _MAX_BYTES) + 1]
    lines = pattern_lines(read)
    short = [line for line in lines[:_MAX_LINES] if len(line) <= _MAX_LINE_CHARS]
    return short, len(read) == len(content) and len(short) == len(lines)


def rules_outside(root: Path) -> list[Outside]:
    """Return the ignore files outside a workspace that is in a repository.

    As in git, these are, the strongest last: the user's global ignore file, the
    `info/exclude` of this clone, and the ignore files in the folders between the top of
    the repository and the workspace. The repository is not trusted: no program is run
    in it, and its configuration is not read.
    """
    files = [
        Outside(str(path), load(path.parent, path.name) or b"", below)
        for path, below in places_outside(root)
    ]
    return [file for file in files if file.content]


def places_outside(root: Path) -> list[tuple[Path, str]]:
    """Return the paths for `rules_outside`, each with the workspace's path for it."""
    repository = repository_of(root)
    if repository is None:
        return []
    top = repository.top
    at_top = root.relative_to(top).as_posix() if root != top else ""
    places = [(repository.common_folder / "info" / "exclude", at_top)]
    if user_file := _user_ignore_file(root):
        places.insert(0, (user_file, at_top))
    parents = [
        folder for folder in reversed(root.parents) if folder.is_relative_to(top)
    ]
    return places + [
        (folder / name, root.relative_to(folder).as_posix())
        for folder in parents
        for name in IGNORE_FILES
    ]


def _user_ignore_file(root: Path) -> Path | None:
    """Return the user's global ignore file, found as git does."""
    path = _configured_ignore_file(root)
    if path is None:
        settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        path = Path(settings, "git", "ignore")
    try:
        return path.resolve(strict=True)  # some people make it a link
    except (OSError, RuntimeError):
        return None


def _configured_ignore_file(root: Path) -> Path | None:
    """Return the ignore file that git reads from the user's configuration, or None."""
    git = find_program("git", never=[root])
    if git is None:
        return None
    homes = {name: os.environ[name] for name in _HOME_VARIABLES if name in os.environ}
    try:
        result = run_program(
            [git, *_EXCLUDES_COMMAND],
            clean_environment({"GIT_CONFIG_NOSYSTEM": "1", **homes}),
            seconds=_GIT_SECONDS,
            folder=Path(Path.home().anchor),
        )
    except OSError as error:
        _log.warning("git did not tell of core.excludesFile: %s", error)
        return None
    if result.was_late:
        _log.warning("git did not tell of core.excludesFile in %g s", _GIT_SECONDS)
        return None
    path = Path(os.fsdecode(result.out.rstrip(b"\n")))
    return path if path.is_absolute() else None
