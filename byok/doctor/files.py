"""Checks of files and folders: the token, who may read them, room on the disk."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from byok.daemon.token import read_token
from byok.doctor.background import in_background
from byok.doctor.results import CheckResult, doubtful, good, skip, wrong
from byok.doctor.surroundings import Surroundings
from byok.errors import ConfigError
from byok.escapes import shell_word
from byok.platform.paths import Paths

_LITTLE, _NOTHING = 512 * 2**20, 2**20  # bytes; an index wants to keep the first free
_TRIED = 2**18  # bytes that are written to see whether that can be done
_FULL = (errno.ENOSPC, errno.EDQUOT)


async def check_token(around: Surroundings, about: str) -> CheckResult:
    """Check that the token is there, whole, and for its owner alone."""
    del about
    return await in_background(lambda: _check_token(around))


def _check_token(around: Surroundings) -> CheckResult:
    file = around.paths.token
    if not os.path.lexists(file):
        if around.paths.daemon.exists():
            return wrong(
                f"{file} is gone", "byok token rotate, then byok connect again"
            )
        return skip(f"{file} does not exist yet: the first start creates it")
    try:
        around.redactor.add(read_token(file))
    except ConfigError as error:
        return wrong(str(error), error.hint)
    return good(f"{file} is readable by its owner only")


async def other_tokens(around: Surroundings) -> Sequence[str]:
    """Return the files that exist of the metrics' token and the owner's secret."""
    files = (around.paths.metrics_token, around.paths.owner_secret)
    return await in_background(lambda: [str(f) for f in files if os.path.lexists(f)])


async def check_other_token(around: Surroundings, name: str) -> CheckResult:
    """Check that such a token is whole, and for its owner alone."""
    return await in_background(lambda: _check_other_token(around, Path(name)))


def _check_other_token(around: Surroundings, file: Path) -> CheckResult:
    try:
        around.redactor.add(read_token(file))
    except ConfigError as error:
        return wrong(str(error), error.hint)
    return good("it is readable by its owner only")


async def folders(around: Surroundings) -> Sequence[str]:
    """Return byok's folders, those that are the same only once."""
    return [str(folder) for folder in around.paths.folders]


async def check_folder(around: Surroundings, name: str) -> CheckResult:
    """Check that a folder and byok's files in it are this user's, and no one else's."""
    return await in_background(lambda: _check_folder(around.paths, Path(name)))


def _check_folder(paths: Paths, folder: Path) -> CheckResult:
    if not folder.exists():
        return good("it does not exist yet")
    for place in (folder, *_files_in(paths, folder)):
        facts = place.stat()
        if not hasattr(os, "geteuid"):
            break  # Windows: the user's profile folder is private by its access list
        if facts.st_uid != os.geteuid():
            return wrong(
                f"{place} belongs to another user",
                f"sudo chown $(id -u) {shell_word(place)}",
            )
        if facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX:
            return wrong(f"others may change {place}", f"chmod go= {shell_word(place)}")
        if facts.st_mode & 0o055:
            return doubtful(
                f"others may read {place}", f"chmod go= {shell_word(place)}"
            )
    return good("only its owner may read it")


def _files_in(paths: Paths, folder: Path) -> Iterator[Path]:
    """Give byok's files in a folder that hold what is private, but for the token."""
    known = (
        *(paths.config, paths.log, paths.provider_data, paths.profiles, paths.models),
        *(paths.database, paths.vectors, paths.vault, paths.vault_key),
    )
    yield from (file for file in known if file.is_file() and folder in file.parents)


async def check_disk(around: Surroundings, about: str) -> CheckResult:
    """Check that there is room to write in the folders of state and data."""
    del about
    return await in_background(lambda: _check_disk(around))


def _check_disk(around: Surroundings) -> CheckResult:
    least, where = None, Path()
    for folder in (around.paths.state_dir, around.paths.data_dir):
        place = _existing(folder)
        if failure := try_to_write(place):
            return _no_room(place, failure)
        free = around.machine.free(place)
        if least is None or free < least:
            least, where = free, place
    least = least or 0
    if least < _NOTHING:
        return _no_room(where, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    said = f"{least / 1e9:,.1f} GB free at {where}"
    if least < _LITTLE:
        return doubtful(f"only {said}: the index stops growing", "Free some disk space")
    return good(said)


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def try_to_write(folder: Path) -> OSError | None:
    """Write a file without a name, which is gone at once; return why that failed."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(_TRIED))
    except OSError as error:
        return error
    return None


def _no_room(folder: Path, error: OSError) -> CheckResult:
    if error.errno in _FULL:
        which = "quota" if error.errno == errno.EDQUOT else "disk"
        return wrong(
            f"the {which} is full at {folder}",
            "Free some disk space: byok then goes on",
        )
    return wrong(
        f"nothing can be written to {folder}: {error.strerror}",
        "Make it writable for you, or let BYOK_HOME name another folder",
    )


async def check_temporary_folder(around: Surroundings, about: str) -> CheckResult:
    """Check that programs can write temporary files."""
    del around, about
    return await in_background(_check_temporary_folder)


def _check_temporary_folder() -> CheckResult:
    try:
        folder = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return wrong("there is none that can be written to", "export TMPDIR=DIR")
    if failure := try_to_write(folder):
        return _no_room(folder, failure)
    free = shutil.disk_usage(folder).free
    return good(f"{folder}, {free / 1e9:,.1f} GB free")
