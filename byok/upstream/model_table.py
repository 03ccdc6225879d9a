"""The table of known models as the package has it, read when it is needed first."""

import logging
from collections.abc import Callable
from functools import cache
from importlib import resources

import orjson

from byok.dialects.known_models import EMPTY_TABLE, ModelTable, read_table

_log = logging.getLogger(__name__)
_TABLE = "known_models.json"


@cache
def packed_table() -> ModelTable:
    """Return the table of the package."""
    return load_table((resources.files("byok") / _TABLE).read_bytes)


def load_table(read: Callable[[], bytes]) -> ModelTable:
    """Read a table; a damaged one is reported and counts as empty."""
    try:
        return read_table(orjson.loads(read()))
    except (OSError, ValueError) as error:
        _log.warning("the table of known models is not used: %s", error)
        return EMPTY_TABLE
