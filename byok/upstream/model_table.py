"""The table of known models in use: the package's, or a newer one from an update.

`byok models update` fetches public lists and stores a table of them beside byok's other
files. No other code fetches them.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from datetime import date
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import orjson
from msgspec import Struct

from byok import __version__
from byok.core.errors import ByokError, ConfigError, UpstreamRefused
from byok.core.platform.paths import find_paths, write_private
from byok.core.wire.json_body import parse_json
from byok.dialects.known_models import (
    EMPTY_TABLE,
    LISTS,
    Doubt,
    ModelTable,
    PublicList,
    Rows,
    combine_lists,
    read_list,
    read_table,
    write_table,
)
from byok.upstream.breaker import CircuitBreaker
from byok.upstream.http_body import hang_up, read_limited
from byok.upstream.http_sender import Caller, redirect_error
from byok.upstream.transport import Route, Transports

_log = logging.getLogger(__name__)
_TABLE = "known_models.json"
_LICENCE = "MIT: models.dev, and LiteLLM, Copyright (c) 2023 Berri AI"
MOST_BYTES = 32 * 2**20  # of a list


class Update(Struct, frozen=True):
    """The changes of an update; models are named `vendor/model`."""

    table: ModelTable
    new: list[str]
    changed: list[str]
    doubts: list[Doubt]


def known_table() -> ModelTable:
    """Return the table in use, which an update may change while byok runs."""
    packed = packed_table()
    updated = _updated_table(_updated_path(os.environ.get("BYOK_HOME")))
    return updated if updated.day >= packed.day else packed


@cache
def packed_table() -> ModelTable:
    """Return the table of the package."""
    return load_table((resources.files("byok.dialects") / _TABLE).read_bytes)


def load_table(read: Callable[[], bytes]) -> ModelTable:
    """Read a table; a damaged one is reported and counts as empty."""
    try:
        return read_table(orjson.loads(read()))
    except (OSError, ValueError) as error:
        _log.warning("the table of known models is not used: %s", error)
        return EMPTY_TABLE


async def fetch_list(public: PublicList, transports: Transports, route: Route) -> bytes:
    """Fetch a public list; only its address and byok's version are sent.

    Raises:
        ByokError: it is not available, or is larger than 32 MiB.
    """
    breaker = CircuitBreaker(upstream=public.name)
    caller = Caller(transports, _NoKey(), breaker, route=route)
    headers = httpx.Headers({"User-Agent": f"byok/{__version__}"})
    response = await caller.call(httpx.URL(public.url), None, lambda key: headers)
    try:
        if response.is_redirect:
            raise redirect_error(response.status_code)
        if not response.is_success:
            raise UpstreamRefused(f"it answered {response.status_code}.")
        return await read_limited(response, MOST_BYTES)
    finally:
        await hang_up(response)


class FetchedLists(NamedTuple):
    """The contents of the public lists, and the failures of those without one."""

    contents: list[bytes]
    failures: list[str]


async def fetch_lists(route: Route) -> FetchedLists:
    """Fetch the public lists; one is enough.

    Raises:
        ConfigError: no list is available.
    """
    transports = Transports()
    try:
        fetched = await asyncio.gather(
            *(fetch_list(public, transports, route) for public in LISTS),
            return_exceptions=True,
        )
    finally:
        await transports.close()
    lists = FetchedLists([], [])
    for public, outcome in zip(LISTS, fetched, strict=True):
        if isinstance(outcome, bytes):
            lists.contents.append(outcome)
        elif isinstance(outcome, ByokError):
            lists.failures.append(f"{public.name}: {outcome.sentence}")
        else:
            raise outcome
    if not lists.contents:
        raise ConfigError(
            f"No list of models can be had; the table stays as it was. "
            f"{' '.join(lists.failures)}",
            hint="Fetch one on another machine, then: byok models update --file FILE",
        )
    return lists


def keep_lists(contents: Sequence[bytes], today: date, path: Path) -> Update:
    """Combine lists with the table in use, and store the result as a file.

    Raises:
        ConfigError: a content is no list of models; nothing was changed.
    """
    lists: dict[str, Rows] = {}
    for content in contents:
        try:
            name, rows = read_list(parse_json(content))
        except (ValueError, RecursionError) as error:
            raise ConfigError(
                f"A list of models cannot be used: {error}.",
                hint="The table stays as it was. Try again later, or with --file FILE.",
            ) from error
        lists[name] = rows
    old = _plain(known_table())
    rows, doubts = combine_lists([*lists.values()], old)
    source = " and ".join(lists)
    content = write_table(rows, source=source, licence=_LICENCE, day=today)
    table = read_table(orjson.loads(content))
    write_private(path, content)
    new, changed = [], []
    for vendor, models in _plain(table).items():
        old_models = old.get(vendor, {})
        for model, row in models.items():
            if model not in old_models:
                new.append(f"{vendor}/{model}")
            elif row != old_models[model]:
                changed.append(f"{vendor}/{model}")
    return Update(table, new, changed, doubts)


class _NoKey:
    async def get(self) -> str:
        return ""

    def forget(self) -> None:
        """Do nothing: there is no key."""


def _plain(table: ModelTable) -> dict[str, dict[str, Any]]:
    return {vendor: {**models} for vendor, models in table.rows.items()}


@cache
def _updated_path(home: str | None) -> Path:
    """Return the path of an updated table; `home`, BYOK_HOME, is the cache key."""
    del home  # `find_paths` reads it again
    return find_paths().known_models


def _updated_table(path: Path) -> ModelTable:
    try:
        stat = path.stat()
    except OSError:
        return EMPTY_TABLE
    return _read_updated(path, (stat.st_ino, stat.st_mtime_ns, stat.st_size))


@lru_cache(maxsize=1)
def _read_updated(path: Path, stamp: tuple[int, ...]) -> ModelTable:
    """Read the file; another `stamp` means that it changed and is read again."""
    return load_table(path.read_bytes)
