"""Where byok stores its files, whether the folders are byok's, and how it writes them.

`BYOK_HOME` puts everything under one folder; otherwise platformdirs decides. The user
may set it by mistake to a project that has folders `state/` and `data/`. byok would
write among the user's files and replace those that happen to have its names. So unless
a file proves that byok made the folder, both may hold only byok's own files. byok never
touches other files beside them.

The proof is a file that every version of byok writes, and that hardly any other program
has: the daemon's lock or log, a private token or vault. There is no marker file,
because the folders of earlier versions have none.
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
# Names that byok uses in these folders besides those in `Paths`.
_OTHER_NAMES = {
    "state": {"client_settings.lock", "settings_backups", "service-task.xml"},
    "data": {"data.db.lock", "vectors", "vault.json.lock"},
}
_COMMON_NAMES = {"capture", "dashboard_sessions.json"}  # of other programs, too
# Files of the system, of file managers and of version control.
_HARMLESS = frozenset({".DS_Store", ".git", ".gitignore", "desktop.ini", "lost+found"})
_SETTINGS = frozenset({"config.toml", "prompts", "settings_backups"})
MAX_WRITE_SECONDS = 3600.0  # seconds


def check_home(home: Path) -> None:
    """Refuse a folder whose `state/` or `data/` holds files of somebody else.

    Raises:
        ConfigError: there are such files, and nothing proves that byok made the folder.
    """
    check_owner(home)
    if not home.is_dir() or _is_proven(home):
        return
    if foreign := next(_find_foreign_files(home), ""):
        raise ConfigError(
            f"BYOK_HOME names {home}, where {foreign} is not a file of byok's. "
            "Nothing was written there.",
            hint=f"Let BYOK_HOME name a new or empty folder, such as {home / 'byok'}.",
        )


def check_owner(folder: Path) -> None:
    """Refuse a folder that another user of the machine owns, or could replace.

    That user could write settings that send code to an address of their own. The
    folders above it are checked, too: whoever may rename one can replace it.

    Raises:
        ConfigError: others may change the folder, or a folder above it.
    """
    if not hasattr(os, "geteuid"):
        return  # Windows: the user's profile folder is private by its access list
    for place in (folder, *folder.parents):
        try:
            facts = place.stat()
        except OSError:
            continue  # it does not exist yet; byok will make it as the user's own
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


def _find_foreign_files(home: Path) -> Iterator[str]:
    """Yield the files that byok does not write, by their paths below the folder."""
    for folder in _OTHER_NAMES:
        place, names = home / folder, _names_of_byok(folder) - _COMMON_NAMES
        if not place.is_dir():
            continue
        for name in sorted(os.listdir(place)):  # noqa: PTH208 - names are enough
            path = place / name
            has_known_name = name in names | _HARMLESS or _is_temporary(name, names)
            is_ours = _CHECKS.get(name)
            if not has_known_name or (is_ours is not None and not is_ours(path)):
                yield path.relative_to(home).as_posix()


def _is_temporary(name: str, names: set[str]) -> bool:
    """Tell whether an interrupted `write_private` or an editor has left this file."""
    return any(name.strip("#").startswith((f".{own}.", f"{own}~")) for own in names)


def _read_json(file: Path) -> Any:
    import orjson  # not for every command

    try:
        return orjson.loads(file.read_bytes())
    except (OSError, ValueError):
        return None


def _is_model_cache(file: Path) -> bool:
    """Tell whether a file holds lists of models, as names or objects, like byok's."""
    lists = _read_json(file)
    if not isinstance(lists, dict) or not all(
        isinstance(models, list) for models in lists.values()
    ):
        return False
    rows = (row for models in lists.values() for row in models)
    names = (row.get("id") if isinstance(row, dict) else row for row in rows)
    return all(isinstance(name, str) for name in names)


def _is_profiles(file: Path) -> bool:
    """Tell whether a file may be the probe's: it holds profiles, or is damaged."""
    value = _read_json(file)
    return value is None or (isinstance(value, dict) and "profiles" in value)


# Other programs use these names, too, so the content is checked.
_CHECKS = {"models.json": _is_model_cache, "profiles.json": _is_profiles}
# Flags to open a path that may be anything: no link is followed, no pipe blocks.
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
        # The token for the metrics only.
        self.metrics_token = state_dir / "metrics-token"
        # Proves byok's own commands to the daemon; clients never get it.
        self.owner_secret = state_dir / "owner-secret"
        # Earlier versions had this file instead of the owner's secret.
        self.dashboard_token = state_dir / "dashboard-token"
        # Facts of the running daemon: pid, port, instance, started.
        self.daemon = state_dir / "daemon.json"
        self.lock = state_dir / "daemon.lock"  # held by the running daemon
        self.models = state_dir / "models.json"  # the last known lists of upstreams
        self.known_models = state_dir / "known_models.json"  # of `byok models update`
        # Data that upstreams want back with their tool calls.
        self.provider_data = state_dir / "provider_data.db"
        # Copies of clients' settings files from before byok changed them.
        self.client_backups = state_dir / "client_settings"
        # Digests and times of the dashboard's sessions.
        self.dashboard_sessions = state_dir / "dashboard_sessions.json"
        self.profiles = state_dir / "profiles.json"  # results of probes of models
        # Facts about each request, without its content.
        self.journal = state_dir / "journal.db"
        # Texts of conversations, if the user wants them to be remembered.
        self.memory = state_dir / "memory.db"
        # The folder of captured requests, redacted.
        self.captures = state_dir / "capture"
        self.log = state_dir / "log" / "byok.log"
        self.database = data_dir / "data.db"  # blobs, checkpoints and workspaces
        # Vectors of code, which can be rebuilt; a folder `vectors` is beside it.
        self.vectors = data_dir / "vectors.db"
        self.index = data_dir / "index"  # the lexical index, which can be rebuilt
        # The host and model that may get code for vectors, and whether it is paused.
        self.embedding_consent = data_dir / "embeddings.json"
        # The search server that may get words of questions.
        self.search_consent = data_dir / "search.json"
        # The encrypted keys, and the key file that opens them, if the user chose these.
        self.vault, self.vault_key = data_dir / "vault.json", data_dir / "vault.key"
        # All of them, files and folders.
        self.files = [path for path in vars(self).values() if isinstance(path, Path)]


def _names_of_byok(folder: str) -> set[str]:
    """Return the names that byok uses in `state` or `data`.

    SQLite has files beside its own, such as `journal.db-wal` and `journal.db-shm`.
    """
    files = Paths(Path("config"), Path("state"), Path("data")).files
    below = (path.parts for path in files if folder in path.parts[:-1])
    names = {name for _, name, *_ in below}
    names |= _OTHER_NAMES[folder]
    pairs = ((name, end) for name in names for end in ("-shm", "-wal"))
    return names | {f"{name}{end}" for name, end in pairs if name.endswith(".db")}


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
    paths = Paths(
        Path(dirs.user_config_dir), Path(dirs.user_state_dir), Path(dirs.user_data_dir)
    )
    for folder in paths.folders:
        check_owner(folder)
    return paths


def write_private(path: Path, content: str | bytes) -> None:
    """Replace a file atomically and durably, readable by its owner only."""
    with _temporary_file(path, content) as temporary:
        temporary.replace(path)


def replace_foreign(
    path: Path, content: bytes, prepare: Callable[[Path], None]
) -> None:
    """Replace a file of another program atomically and durably.

    `prepare` is called with the temporary file right before it replaces the old one, to
    copy its permissions, or to raise an error. Nothing else in the folder is touched.
    """
    with _temporary_file(path, content, sweeps=False) as temporary:
        prepare(temporary)
        temporary.replace(path)


def create_private(path: Path, content: str) -> None:
    """Write a file like `write_private`, but only if it does not exist.

    Raises:
        FileExistsError: it exists; another process may just have created it.
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
    """Yield a temporary file whose content and new name survive a power cut."""
    raw = content if isinstance(content, bytes) else content.encode()
    if sweeps:
        make_private(path.parent)
        sweep(path, older_than=MAX_WRITE_SECONDS)
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
        if error.filename is None:  # such as for a write to a full disk
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
    for file in path.parent.glob(f".{path.name}.*"):
        with contextlib.suppress(FileNotFoundError):  # another writer swept it
            facts = file.lstat()
            old = not older_than or time.time() - facts.st_mtime > older_than
            if old and stat.S_ISREG(facts.st_mode) and temporary.fullmatch(file.name):
                file.unlink()


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
    """Refuse a path that is no plain file of this user, or has `forbidden` mode bits.

    Raises:
        ConfigError: it is refused.
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


def list_own_files(paths: Paths, *, with_settings: bool) -> list[Path]:
    """Return byok's files and folders, one level below its root folders.

    Only names that byok uses in a folder are listed, because `BYOK_HOME` may hold files
    of the user's. No link is followed. `with_settings` includes the settings, their
    backups and the user's prompts.
    """
    # Such as `data.db-wal`, or a copy that was set aside (`data.db.damaged-1`).
    suffix = "(?:[-.~].*)?"
    names_by_folder = (
        (paths.config_dir, {"config.toml", "prompts"}, ""),
        (paths.state_dir, _names_of_byok("state"), suffix),
        (paths.data_dir, _names_of_byok("data"), suffix),
    )
    excluded = frozenset() if with_settings else _SETTINGS
    files = set[Path]()
    for folder, names, ending in names_by_folder:
        if folder.is_dir() and not folder.is_symlink():
            known = "|".join(map(re.escape, sorted(names - excluded)))
            pattern = re.compile(rf"(?:{known}){ending}|\.(?:{known})\.[a-z0-9_]{{8}}")
            files |= {path for path in folder.iterdir() if pattern.fullmatch(path.name)}
    return sorted(files)


def remove_own_files(paths: Paths, files: Iterable[Path]) -> list[Path]:
    """Remove files; return the folders of byok that stay because of other files.

    An empty folder is removed only if byok made it: the one in `BYOK_HOME` is the
    user's.
    """
    for path in files:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    remaining: list[Path] = []
    for folder in reversed(paths.folders):
        if not folder.is_dir() or folder.is_symlink():
            continue
        if any(folder.iterdir()):
            remaining.append(folder)
        elif folder.name in ("byok", "state", "data"):
            folder.rmdir()
    return remaining
