"""Checks of the databases beside the index: what they hold can be made again."""

from collections.abc import Sequence
from pathlib import Path

from byok.doctor.background import in_background
from byok.doctor.index_files import find_damage
from byok.doctor.results import CheckResult, doubtful, good
from byok.doctor.surroundings import Surroundings

_SECONDS = 10.0


async def own_databases(around: Surroundings) -> Sequence[str]:
    """Return the databases that exist: journal, kept reasoning, vectors."""
    paths = around.paths
    known = (paths.journal, paths.provider_data, paths.vectors)
    return await in_background(lambda: [str(file) for file in known if file.is_file()])


async def check_database(around: Surroundings, name: str) -> CheckResult:
    """Check that a database is whole; a damaged one is replaced at the next start."""
    del around
    if damage := await in_background(lambda: find_damage(Path(name), _SECONDS)):
        return doubtful(f"it is damaged: {damage}", "byok restart: it is begun anew")
    return good("it is whole")
