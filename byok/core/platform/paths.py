"""Where byok stores its files, whether the folders are byok's, and how it writes them.

`BYOK_HOME` puts everything under one folder; otherwise platformdirs decides. It may be
set by mistake to a project that has folders `state/` and `data/`. byok would write
between the user's files and replace those that happen to have its names. So unless a
file proves that byok made the folder, both may hold only byok's own files. Other files
beside them are no concern: byok never touches them.

The proof is a file that every version of byok writes and hardly anybody else has: the
daemon's lock or log, a private token or vault. There is no marker file, because the
folders of earlier versions have none.
"""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from byok.core.errors import ConfigError
from byok.core.escapes import shell_word

_PROOFS = ("state/daemon.lock", "state/log/byok.log")
_PRIVATE_PROOFS = ("state/token", "data/vault.json")
# What byok keeps there beside the files that `Paths` names.
_BESIDE = {
    "state": {"client_settings.lock", "settings_backups", "service-task.xml"},
    "data": {"data.db.lock", "vectors", "vault.json.lock"},
}
_USUAL = {"capture", "dashboard_sessions.json"}  # others may well call theirs so
# Files of the system, of file managers and of version control.
_HARMLESS = frozenset({".DS_Store", ".git", ".gitignore", "desktop.ini", "lost+found"})


def check_home(home: Path) -> None:
    """Refuse a folder in whose `state/` or `data/` somebody else keeps files.

    Raises:
        ConfigError: there are such files, and nothing proves that byok made the folder.
    """
    check_owner(home)
    if not home.is_dir() or _is_proven(home):
        return
    if foreign := next(_foreign(home), ""):
        raise ConfigError(
            f"BYOK_HOME names {home}, where {foreign} is not a file of byok's. "
            "Nothing was written there.",
            hint=f"Let BYOK_HOME name a new or empty folder, such as {home / 'byok'}.",
        )


def check_owner(folder: Path) -> None:
    """Refuse a folder that another user of the machine owns, or could replace.

    He could put settings there that send code to his own address. The folders above it
    count too: whoever may rename one can put another in its place.

    Raises:
        ConfigError: it, or a folder above it, is not this user's alone to change.
    """
    if not hasattr(os, "geteuid"):
        return  # Windows: the user's profile folder is private by its access list
    for place in (folder, *folder.parents):
        try:
            facts = place.stat()
        except OSError:
            continue  # it will be made, and then is the user's own
        if not stat.S_ISDIR(facts.st_mode):
            continue
        if facts.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"{place} belongs to another user. byok keeps its secrets there only "
                "if it is yours.",
                hint="Run byok as that user, or let BYOK_HOME name a folder of yours.",
            )
        if facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
            raise ConfigError(
                f"{place} can be changed by every user of this machine.",
                hint=f"Run: chmod o-w {shell_word(place)}",
            )


def _is_proven(home: Path) -> bool:
    return any(_is_plain(home / name) for name in _PROOFS) or any(
        _is_plain(home / name, private=True) for name in _PRIVATE_PROOFS
    )


def _is_plain(file: Path, *, private: bool = False) -> bool:
    try:
        mode = file.lstat().st_mode
    except OSError:
        return False
    open_to_others = private and os.name == "posix" and mode & 0o077
    return stat.S_ISREG(mode) and not open_to_others


def _foreign(home: Path) -> Iterator[str]:
    """Give the files that byok does not write, by their paths below the folder."""
    for folder in _BESIDE:
        place, known = home / folder, _own_names(folder) - _USUAL
        if not place.is_dir():
            continue
        for name in sorted(os.listdir(place)):  # noqa: PTH208 - names are enough
            path = place / name
            is_named = name in known | _HARMLESS or _is_temporary(name, known)
            is_ours = _CHECKS.get(name, _is_any)
            if not (is_named and is_ours(path)):
                yield path.relative_to(home).as_posix()


def _is_temporary(name: str, known: set[str]) -> bool:
    """Tell what an interrupted `write_private` or an editor left of a known file."""
    return any(name.strip("#").startswith((f".{own}.", f"{own}~")) for own in known)


def _read_json(file: Path) -> Any:
    import orjson  # not for every command

    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return None


def _is_model_cache(file: Path) -> bool:
    """Tell whether a file is the catalog's: lists of models, by name or as objects."""
    lists = _read_json(file)
    return isinstance(lists, dict) and all(
        isinstance(models, list) and all(map(_is_model, models))
        for models in lists.values()
    )


def _is_model(row: Any) -> bool:
    name = row.get("id") if isinstance(row, dict) else row
    return isinstance(name, str)


def _is_profiles(file: Path) -> bool:
    """Tell whether a file is the probe's; a damaged one may be."""
    value = _read_json(file)
    return value is None or (isinstance(value, dict) and "profiles" in value)


def _is_any(file: Path) -> bool:
    return True


# Others have files of these names too.
_CHECKS = {"models.json": _is_model_cache, "profiles.json": _is_profiles}


LONGEST_WRITE = 3600.0  # seconds
# How a file is opened that may be anything: no link, nor a pipe that would block.
READ_PLAIN = os.O_RDONLY
for _flag in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK"):
    READ_PLAIN |= getattr(os, _flag, 0)


class Paths:
    """The three root folders and every file below them; no other place names files."""

    def __init__(self, config_dir: Path, state_dir: Path, data_dir: Path) -> None:
        self.config_dir, self.state_dir, self.data_dir = config_dir, state_dir, data_dir
        self.folders = (*dict.fromkeys((config_dir, state_dir, data_dir)),)

        self.config = config_dir / "config.toml"
        self.prompts = config_dir / "prompts"  # the user's own
        self.token = state_dir / "token"  # of clients
        # The token that opens the metrics, and nothing else.
        self.metrics_token = state_dir / "metrics-token"
        # What proves byok's own commands to the daemon; no client is ever given it.
        self.owner_secret = state_dir / "owner-secret"
        # What earlier versions had in place of the owner's secret.
        self.dashboard_token = state_dir / "dashboard-token"
        # Facts of the running daemon: pid, port, instance, started.
        self.daemon = state_dir / "daemon.json"
        self.lock = state_dir / "daemon.lock"  # that the running daemon holds
        self.models = state_dir / "models.json"  # the last known lists of upstreams
        self.known_models = state_dir / "known_models.json"  # of `byok models update`
        # What upstreams want back with their tool calls.
        self.provider_data = state_dir / "provider_data.db"
        # What the settings files of clients were before byok changed them.
        self.client_backups = state_dir / "client_settings"
        # Digests and times.
        self.dashboard_sessions = state_dir / "dashboard_sessions.json"
        self.profiles = state_dir / "profiles.json"  # what probes found out of models
        # What became of each request, without its content.
        self.journal = state_dir / "journal.db"
        # What was said in conversations, if the user wants them to be remembered.
        self.memory = state_dir / "memory.db"
        # The folder with what passed while requests were captured, redacted.
        self.captures = state_dir / "capture"
        self.log = state_dir / "log" / "byok.log"
        self.database = data_dir / "data.db"  # blobs, checkpoints and workspaces
        # Vectors of code, which can be made again; a folder `vectors` is beside it.
        self.vectors = data_dir / "vectors.db"
        self.index = data_dir / "index"  # the lexical one, which can be rebuilt
        # Which host and model may get code for vectors, and whether that is paused.
        self.embedding_consent = data_dir / "embeddings.json"
        # Which search server may get words of questions.
        self.search_consent = data_dir / "search.json"
        # The encrypted keys, and the key file that opens them, if the user chose these.
        self.vault, self.vault_key = data_dir / "vault.json", data_dir / "vault.key"
        places = vars(self).values()
        self.files = [one for one in places if isinstance(one, Path)]  # and folders


def _own_names(folder: str) -> set[str]:
    """Return the names that byok uses in `state` or `data`.

    SQLite has files beside its own, such as `journal.db-wal` and `journal.db-shm`.
    """
    files = Paths(Path("config"), Path("state"), Path("data")).files
    below = (path.parts for path in files if folder in path.parts[:-1])
    names = {name for _, name, *_ in below}
    names |= _BESIDE[folder]
    beside = ((name, end) for name in names for end in ("-shm", "-wal"))
    return names | {f"{name}{end}" for name, end in beside if name.endswith(".db")}


def find_paths(environ: Mapping[str, str] = os.environ) -> Paths:
    """Return the paths of this user.

    Raises:
        ConfigError: `BYOK_HOME` is not an absolute path, or a folder with other files;
            a folder is not this user's alone.
    """
    if home := environ.get("BYOK_HOME", ""):
        root = Path(home).expanduser()
        if not root.is_absolute():
            raise ConfigError(
                "BYOK_HOME must be an absolute path.",
                hint=f"Such as: export BYOK_HOME={shell_word(root.absolute())}",
            )
        check_home(root)
        return Paths(root, root / "state", root / "data")
    dirs = platformdirs.PlatformDirs("byok", appauthor=False)
    found = Paths(
        Path(dirs.user_config_dir), Path(dirs.user_state_dir), Path(dirs.user_data_dir)
    )
    for folder in found.folders:
        check_owner(folder)
    return found


def write_private(path: Path, content: str | bytes) -> None:
    """Replace a file atomically and durably, readable by its owner only."""
    with _temporary_file(path, content) as temporary:
        temporary.replace(path)


def replace_foreign(
    path: Path, content: bytes, prepare: Callable[[Path], None]
) -> None:
    """Replace a file of another program atomically and durably.

    `prepare` gets the temporary file right before it takes the place: to make it like
    the old one, or to raise what keeps it from doing so. Nothing else in the folder is
    touched.
    """
    with _temporary_file(path, content, sweeps=False) as temporary:
        prepare(temporary)
        temporary.replace(path)


def create_private(path: Path, content: str) -> None:
    """Write a file like `write_private`, but only if it does not exist.

    Raises:
        FileExistsError: it exists, perhaps since a moment ago.
    """
    with _temporary_file(path, content) as temporary:
        try:
            path.hardlink_to(temporary)  # unlike a rename, it replaces nothing
        except OSError:
            if os.path.lexists(path):
                raise
            temporary.replace(path)  # a disk without hard links


@contextlib.contextmanager
def _temporary_file(
    path: Path, content: str | bytes, *, sweeps: bool = True
) -> Iterator[Path]:
    """Give a temporary file; its content and its new name survive a power cut."""
    raw = content if isinstance(content, bytes) else content.encode()
    if sweeps:
        make_private(path.parent)
        sweep(path, older_than=LONGEST_WRITE)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
        sync_folder(path.parent)
    except OSError as error:
        if error.filename is None:  # as of a write to a full disk
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path, *, older_than: float = 0) -> None:
    """Remove temporary files that a killed `write_private` left, and nothing else.

    The only writer of a file removes them all. If others may be writing, `older_than`
    is the age in seconds after which a write cannot be in progress.
    """
    temporary = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    for left in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(FileNotFoundError):  # another writer swept it
            facts = left.lstat()
            old = not older_than or time.time() - facts.st_mtime > older_than
            if old and stat.S_ISREG(facts.st_mode) and temporary.fullmatch(left.name):
                left.unlink()


def sync_folder(folder: Path) -> None:
    """Make a new file name survive a power cut, if the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_private(folder: Path) -> None:
    """Create a folder and its parents so that only the owner may enter them.

    Existing folders keep their permissions.
    """
    for place in [*reversed(folder.parents), folder]:
        if not place.is_dir():
            try:
                place.mkdir(mode=0o700, exist_ok=True)
            except PermissionError as error:  # the folder to make writable is above
                error.filename = str(place.parent)
                raise
            sync_folder(place.parent)


def check_private(path: Path, cure: str = "Remove it.") -> None:
    """Refuse a secret file that others could read or replace; `cure` is the hint.

    Raises:
        ConfigError: it is not a plain file, belongs to another user, or is readable by
            others.
    """
    check_file(path, path.lstat(), 0o077, cure)


def check_file(
    path: Path, facts: os.stat_result, forbidden: int, cure: str = ""
) -> None:
    """Refuse what is no plain file of this user, or `forbidden` to be open to others.

    Raises:
        ConfigError: it is so.
    """
    if not stat.S_ISREG(facts.st_mode):
        raise ConfigError(f"{path} must be a plain file.", hint=cure)
    if not hasattr(os, "geteuid"):
        return  # Windows: the user's profile folder is private by its access list
    if facts.st_uid != os.geteuid():
        raise ConfigError(
            f"{path} belongs to another user.",
            hint="Run byok as that user, without sudo."
            if os.geteuid() == 0
            else f"If it should be yours: sudo chown $(id -un) {shell_word(path)}",
        )
    if not facts.st_mode & forbidden:
        return
    if forbidden & stat.S_IROTH:
        raise ConfigError(
            f"{path} can be read or changed by other users.",
            hint=f"Run: chmod 600 {shell_word(path)}",
        )
    raise ConfigError(
        f"{path} can be changed by other users.",
        hint=f"Look through it, then run: chmod go-w {shell_word(path)}",
    )


_SETTINGS = frozenset({"config.toml", "prompts", "settings_backups"})


def list_own_files(paths: Paths, *, with_settings: bool) -> list[Path]:
    """Return byok's files and folders, one level below its root folders.

    Only the names that byok uses in a folder count there: what `BYOK_HOME` names may
    hold files of the user's. Nothing is followed through a link. `with_settings`
    includes the settings, their backups and the user's prompts.
    """
    # `data.db-wal`, a copy that was set aside (`data.db.damaged-1`)
    rest = "(?:[-.~].*)?"
    named = (
        (paths.config_dir, {"config.toml", "prompts"}, ""),
        (paths.state_dir, _own_names("state"), rest),
        (paths.data_dir, _own_names("data"), rest),
    )
    kept = frozenset() if with_settings else _SETTINGS
    found = set[Path]()
    for folder, names, ending in named:
        if folder.is_dir() and not folder.is_symlink():
            known = "|".join(map(re.escape, sorted(names - kept)))
            own = re.compile(rf"(?:{known}){ending}|\.(?:{known})\.[a-z0-9_]{{8}}")
            found |= {path for path in folder.iterdir() if own.fullmatch(path.name)}
    return sorted(found)


def remove_own_files(paths: Paths, files: Iterable[Path]) -> list[Path]:
    """Remove these; return byok's folders that stay because others' files are there.

    A folder goes when nothing else is in it, and only if byok made it: what `BYOK_HOME`
    names is the user's.
    """
    for path in files:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    kept: list[Path] = []
    for folder in reversed(paths.folders):
        if not folder.is_dir() or folder.is_symlink():
            continue
        if any(folder.iterdir()):
            kept.append(folder)
        elif folder.name in ("byok", "state", "data"):
            folder.rmdir()
    return kept
