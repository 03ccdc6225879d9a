"""Check that `state/` and `data/` below `BYOK_HOME` are byok's, before writing there.

`BYOK_HOME` may be set by mistake to a project that has folders of these names. byok
would write between the user's files and replace those that happen to have its names.
So unless a file proves that byok made the folder, both may hold only byok's own files.
Other files beside them are no concern: byok never touches them.

The proof is a file that every version of byok writes and hardly anybody else has: the
daemon's lock or log, a private token or vault. There is no marker file, because the
folders of earlier versions have none.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byok.core.errors import ConfigError
from byok.core.escapes import shell_word

_PROOFS = ("state/daemon.lock", "state/log/byok.log")
_PRIVATE_PROOFS = ("state/token", "data/vault.json")
OWN_NAMES = {
    "state": {
        "client_settings",
        "daemon.json",
        "daemon.lock",
        "dashboard-token",
        "journal.db",
        "journal.db-shm",
        "journal.db-wal",
        "known_models.json",
        "log",
        "models.json",
        "profiles.json",
        "provider_data.db",
        "provider_data.db-shm",
        "provider_data.db-wal",
        "service-task.xml",
        "settings_backups",
        "token",
        "metrics-token",
        "owner-secret",
    },
    "data": {
        "data.db",
        "data.db-shm",
        "data.db-wal",
        "data.db.lock",
        "index",
        "vault.json",
        "vault.key",
        "vectors",
        "vectors.db",
        "vectors.db-shm",
        "vectors.db-wal",
    },
}
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
    for folder, known in OWN_NAMES.items():
        place = home / folder
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
