"""Ignore rules of a workspace: one decision for the walk, the watcher and ripgrep.

Order: secret names, then `.gitignore` and `.augmentignore` of every folder, the rules
stored elsewhere (`git_rules`), then folders of generated files. A deeper folder wins
over a higher one, `.augmentignore` over `.gitignore`, a later line over an earlier one.
What is below an ignored folder stays ignored.
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
from byok.search.index.files.reading import Folder, Unreadable
from byok.search.index.files.repository import (
    is_other_work_tree,
    load,
    repository_of,
)
from byok.search.index.files.roots import OwnFolders
from byok.search.index.files.secret_names import as_it_looks, is_private, is_secret
from byok.search.index.types import IndexOptions, SkipReason

# Ignore rules that apply to a workspace and are stored outside of it.
#
# As in git: the user's global ignore file, the `info/exclude` of this clone, and the
# ignore files in the folders between the top of the repository and the workspace. No
# program is run in a repository, and its configuration is not read: it is not trusted.


IGNORE_FILES = (".gitignore", ".augmentignore")
_log = logging.getLogger(__name__)
_SECONDS = 5.0
_ASK = ("config", "--global", "--type=path", "--get", "core.excludesFile")
_HOMES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "USERPROFILE")


class Outside(NamedTuple):
    """An ignore file; `below` is the workspace's path in the folder it holds for."""

    name: str
    content: bytes
    below: str


def rules_outside(root: Path) -> list[Outside]:
    """Return the ignore files outside a workspace, those that win last.

    None where the workspace is in no repository.
    """
    found = [
        Outside(str(path), load(path) or b"", below)
        for path, below in places_outside(root)
    ]
    return [rules for rules in found if rules.content]


def places_outside(root: Path) -> list[tuple[Path, str]]:
    """Return where `rules_outside` looks, and the workspace's path below that."""
    repository = repository_of(root)
    if repository is None:
        return []
    top = repository.top
    at_top = root.relative_to(top).as_posix() if root != top else ""
    found = [(repository.common / "info" / "exclude", at_top)]
    if own := _of_user(root):
        found.insert(0, (own, at_top))
    above = [at for at in reversed(root.parents) if at.is_relative_to(top)]
    return found + [
        (at / name, root.relative_to(at).as_posix())
        for at in above
        for name in IGNORE_FILES
    ]


def _of_user(root: Path) -> Path | None:
    """Return the user's own ignore file for all repositories, as git finds it."""
    path = _global_ignore_file(root)
    if path is None:
        settings = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        path = Path(settings, "git", "ignore")
    try:
        return path.resolve(strict=True)  # people link it to where they keep such files
    except (OSError, RuntimeError):
        return None


def _global_ignore_file(root: Path) -> Path | None:
    """Return what the user's own configuration names; git reads it for us."""
    git = find_program("git", never=[root])
    if git is None:
        return None
    homes = {name: os.environ[name] for name in _HOMES if name in os.environ}
    try:
        ended = run_program(
            [git, *_ASK],
            clean_environment({"GIT_CONFIG_NOSYSTEM": "1", **homes}),
            seconds=_SECONDS,
            folder=Path(Path.home().anchor),
        )
    except OSError as error:
        _log.warning("git did not tell of core.excludesFile: %s", error)
        return None
    if ended.was_late:
        _log.warning("git did not tell of core.excludesFile in %g s", _SECONDS)
        return None
    told = Path(os.fsdecode(ended.out.rstrip(b"\n")))
    return told if told.is_absolute() else None


_MAX_BYTES = 64 * 1024
_MAX_LINES = 1_000
_MAX_LINE = 1_000
_MAX_LINES_IN_FORCE = 4_000
_MAX_LINES_IN_ALL = 50_000  # compiling them takes seconds
_MAX_FOLDERS = 100_000
_TOO_LONG = (
    f"is too long: only {_MAX_LINES:,} lines of up to {_MAX_LINE:,} characters,"
    f" {_MAX_BYTES // 1024} KiB in all, count"
)
# What programs write, and nobody reads as code. These are the weakest rules: `!*.log`
# in an ignore file lifts such a line. Names that people also give to folders of their
# own (build, dist, target) only count at the root.
_NOISE = """
node_modules/ bower_components/ .yarn/cache/ .pnpm-store/
__pycache__/ .venv/ venv/ .tox/ .nox/ .eggs/ *.egg-info/ .ipynb_checkpoints/
.mypy_cache/ .ruff_cache/ .pytest_cache/ .hypothesis/ .direnv/ htmlcov/ .nyc_output/
.gradle/ .next/ .nuxt/ .svelte-kit/ .parcel-cache/ .turbo/ .dart_tool/
/dist/ /target/ .DS_Store Thumbs.db
*.log *.log.[0-9]* *.log-[0-9]* *.pid *.tmp *.temp *.swp *.swo *~ *.bak *.orig *.rej
"""
NOISE = tuple(_NOISE.split())

# Patterns, what stands before a path for them, and where their part of it begins;
# those that win come first.
_Chain = tuple[tuple[Patterns, str, int], ...]


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
        self.reason = reason  # why the folder itself is left out
        self._rules = rules
        self._prefix = f"{path}/" if path else ""
        self._parent = as_it_looks(path.rpartition("/")[2].casefold())
        # A private folder that the user opened.
        self._private = is_secret(path, is_dir=True)

    def judge(self, name: str, *, is_dir: bool) -> SkipReason | None:
        """Return why a name in this folder is skipped, None if it is not."""
        if self.reason:
            return self.reason
        path = self._prefix + name
        rules = self._rules
        looks = as_it_looks(name.casefold())
        is_suspect = self._private or is_private(self._parent, looks, is_dir=is_dir)
        if is_suspect and is_secret(path, rules.allow_secret, is_dir=is_dir):
            return SkipReason.SECRET
        if is_dir and rules.is_own(path):
            return SkipReason.SECRET
        for patterns, before, start in self.chain:
            verdict = patterns.verdict(before + path[start:], is_dir=is_dir)
            if verdict is not None:
                if verdict:
                    return SkipReason.IGNORED
                break
        if is_dir:
            return SkipReason.WORK_TREE if rules.is_work_tree(path) else None
        if not rules.extensions:
            return None
        wanted = name.casefold().endswith(rules.extensions)
        return None if wanted else SkipReason.EXTENSION

    def explain(self, name: str, reason: SkipReason, *, is_dir: bool) -> ExcludingRule:
        """Return the rule by which a name in this folder is skipped, and its cure."""
        path, end = self._prefix + name, "/" if is_dir else ""
        if reason is SkipReason.WORK_TREE:
            return ExcludingRule()
        if reason is SkipReason.EXTENSION:
            return ExcludingRule(cure=Path(name).suffix, place="context.extensions")
        if reason is SkipReason.SECRET:
            cure = f"/{_spell(path)}{end}"
            stays = is_secret(path, (cure,), is_dir=is_dir) or (
                is_dir and self._rules.is_own(path)
            )
            if stays:
                return ExcludingRule()
            return ExcludingRule(cure=cure, place="context.allow_secret")
        for patterns, before, start in self.chain:
            at = patterns.place_of(before + path[start:], is_dir=is_dir)
            if at is not None:
                return ExcludingRule(
                    patterns.lines[at],
                    patterns.name,
                    self._rules.number_of(patterns.name, patterns.lines[at]),
                    f"!/{_spell(path[start:])}{end}",
                    path[:start] + IGNORE_FILES[-1],
                )
        return ExcludingRule()


class Rules:
    """The rules of one workspace; folders are judged once, then remembered.

    `load` returns the content of a file of the workspace, or None; `outside` the ignore
    files that lie elsewhere, those that win last. `allow_secret` are the user's
    patterns (as in .gitignore) that lift secret names, `is_own` knows byok's folders
    below the root, `is_work_tree` other work trees of the same repository. `extensions`
    are the only ones wanted (none: all). Any thread may ask.
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
        self._said = SaidOnce(_MAX_LINES)
        # What does not count of an ignore file, by its path.
        self.notes: dict[str, str] = {}

    def reason(self, path: str, *, is_dir: bool = False) -> SkipReason | None:
        """Return why a path is skipped, by itself or by a folder above; else None."""
        parent, _, name = path.rpartition("/")
        return self.folder(parent).judge(name, is_dir=is_dir)

    def find_rule(self, path: str, *, is_dir: bool = False) -> ExcludingRule:
        """Return what leaves out a path, or the first folder on the way to it."""
        above, parts = "", path.split("/")
        for count, name in enumerate(parts, 1):
            judged = {"is_dir": is_dir or count < len(parts)}
            folder = self.folder(above)
            if reason := folder.judge(name, **judged):
                return folder.explain(name, reason, **judged)
            above = "/".join(parts[:count])
        return ExcludingRule()

    def number_of(self, file: str, line: str) -> int:
        """Return where a line stands in an ignore file, 0 in byok's own rules."""
        outer = (one.content for one in self._outside() if one.name == file)
        content = self._load(file) if file else None
        text = (content or next(outer, b"")).removeprefix(b"\xef\xbb\xbf")
        lines = text.decode("utf-8", "surrogateescape").split("\n")
        found = [at for at, one in enumerate(lines, 1) if one.rstrip("\r") == line]
        return found[-1] if found else 0

    def folder(self, path: str, names: Collection[str] | None = None) -> FolderRules:
        """Return the rules of a folder; "" is the root.

        `names` are those in the folder, if known: they save looking for ignore files.
        """
        folders = self._folders  # forgetting puts another one in its place
        found = folders.get(path)
        if found is not None:
            return found
        if len(folders) >= _MAX_FOLDERS:
            folders.clear()
        at = ""
        here = folders.get(at)
        if here is None:
            here = folders[at] = self._root(names if at == path else None)
        for part in path.split("/") if path else ():
            at = f"{at}/{part}" if at else part
            below = folders.get(at)
            if below is None:
                below = self._below(here, at, names if at == path else None)
                folders[at] = below
            here = below
        return here

    def forget(self, folder: str) -> None:
        """Read the ignore files in a folder and below it again when next needed."""
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
        """Return what does not count of the ignore files above a path, in sentences.

        They have no full stop. Only of files that have been read, as `reason` does.
        """
        return [
            note
            for name, note in list(self.notes.items())
            if Path(name).is_absolute() or path.startswith(name[: name.rfind("/") + 1])
        ]

    def _root(self, names: Collection[str] | None) -> FolderRules:
        chain: _Chain = ((self._noise, "", 0),)
        outer: _Chain = ()
        for name, content, below in self._outside():
            outer = self._append_rules(
                outer, name, content, f"{below}/" if below else "", 0
            )
        if not _covers(outer):
            chain = (*outer, *chain)
        return FolderRules(self, "", self._with_files(chain, "", names))

    def _below(
        self, above: FolderRules, path: str, names: Collection[str] | None
    ) -> FolderRules:
        reason = above.judge(path.rpartition("/")[2], is_dir=True)
        if reason:
            return FolderRules(self, path, reason=reason)
        return FolderRules(self, path, self._with_files(above.chain, path + "/", names))

    def _with_files(
        self, chain: _Chain, prefix: str, names: Collection[str] | None
    ) -> _Chain:
        for name in IGNORE_FILES:
            if names is None or name in names:
                chain = self._with(chain, prefix + name, len(prefix))
        return chain

    def _with(self, chain: _Chain, path: str, start: int) -> _Chain:
        content = self._load(path)
        return self._append_rules(chain, path, content, "", start) if content else chain

    def _append_rules(
        self, chain: _Chain, path: str, content: bytes, before: str, start: int
    ) -> _Chain:
        lines, whole = _bounded_lines(content)
        if not whole:
            self._report(path, _TOO_LONG)
        in_force = len(lines) + sum(len(patterns) for patterns, _, _ in chain)
        self._lines += len(lines)
        if in_force > _MAX_LINES_IN_FORCE or self._lines > _MAX_LINES_IN_ALL:
            self._report(path, "is left out: too many rules in this workspace")
            return chain
        patterns = Patterns(lines, path)
        if patterns.unreadable:
            few = ", ".join(ascii(line[:60]) for line in patterns.unreadable[:3])
            count = len(patterns.unreadable)
            self._report(path, f"has {count} lines that byok cannot read: {few}")
        return ((patterns, before, start), *chain) if len(patterns) else chain

    def _report(self, path: str, what: str) -> None:
        """Note that something in an ignore file does not count; log it once."""
        if path in self.notes or len(self.notes) < _MAX_LINES:
            self.notes[path] = f"the ignore file {path!a} {what}"
        if self._said.is_new(path):
            _log.warning("%s", self.notes[path])


def _spell(path: str) -> str:
    """Return the pattern that names one path."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


def _covers(outer: _Chain) -> bool:
    """Tell whether rules from outside leave the workspace itself out.

    The user declared it all the same, so they say nothing of what is in it.
    """
    whole = max((before for _, before, _ in outer), key=len, default="")
    ends = [at for at, letter in enumerate(whole) if letter == "/"]
    for end in ends:  # from the top down, as git asks
        for patterns, before, _ in outer:
            above = len(whole) - len(before)
            if end > above:
                verdict = patterns.verdict(whole[above:end], is_dir=True)
                if verdict is not None:
                    if verdict:
                        return True
                    break
    return False


def _bounded_lines(content: bytes) -> tuple[list[str], bool]:
    """Return the lines that count, and whether those are all."""
    kept = content
    if len(content) > _MAX_BYTES:
        kept = content[: content.rfind(b"\n", 0, _MAX_BYTES) + 1]
    lines = pattern_lines(kept)
    short = [line for line in lines[:_MAX_LINES] if len(line) <= _MAX_LINE]
    return short, len(kept) == len(content) and len(short) == len(lines)


def rules_of(root: Path, options: IndexOptions) -> Rules:
    """Return the ignore rules of a workspace; byok's own folders are left out."""
    own = OwnFolders(options.own_folders)
    return Rules(
        partial(_ignore_file, root),
        outside=partial(rules_outside, root),
        allow_secret=options.allow_secret,
        extensions=options.extensions,
        is_own=lambda path: own.include(f"{root}/{path}"),
        is_work_tree=lambda path: is_other_work_tree(f"{root}/{path}", root),
    )


def _ignore_file(root: Path, path: str) -> bytes | None:
    """Read an ignore file of a workspace, if there is one."""
    try:
        with Folder(root) as folder:
            return folder.load(path)
    except Unreadable:
        return None
