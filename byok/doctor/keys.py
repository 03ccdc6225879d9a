"""Checks of keys: where each comes from, in what time; whether there is a keyring."""

from collections.abc import Sequence
from functools import partial

from byok.chat import Json
from byok.doctor.background import in_background
from byok.doctor.results import CheckResult, doubtful, good, wrong
from byok.doctor.surroundings import Surroundings
from byok.doctor.upstream_access import get_ladder, open_upstream
from byok.errors import ConfigError, KeyMissing
from byok.keys import FoundKey, KeyWanted
from byok.keys.keyring_store import KeyringStore
from byok.routing import Service
from byok.urls import is_loopback
from byok.wiring.key_sources import keys_wanted

_SLOW_SECONDS = 2.0
_CREDENTIAL = "systemd credential"


async def keys_looked_up(around: Surroundings) -> Sequence[str]:
    """Return the titles of the keys: the upstream, and the key's name if several."""
    return [wanted.title for wanted in await _all_wanted(around)]


async def _all_wanted(around: Surroundings) -> list[KeyWanted]:
    upstreams = await around.upstreams()
    return [one for n, section in upstreams.items() for one in keys_wanted(n, section)]


async def check_key(around: Surroundings, title: str) -> CheckResult:
    """Check where a key comes from, and that the source answers in time."""
    wanted = next(one for one in await _all_wanted(around) if one.title == title)
    try:
        found = await _find(around, wanted)
    except KeyMissing as error:
        return await _no_key(around, wanted, error)
    except ConfigError as error:
        return wrong(str(error), error.hint or f"byok keys set {wanted.title}")
    around.redactor.add(found.value)
    seconds = (await get_ladder(around)).seconds[wanted]
    if not await _daemon_has_it(around, wanted, found):
        return wrong(
            f"from {found.source} here, and the running daemon does not have it",
            f"byok restart in this shell, or store it: byok keys set {title}",
        )
    if seconds > _SLOW_SECONDS:
        return doubtful(
            f"from {found.source}, after {seconds:.1f} s: the first chat waits for it",
            f"A quicker source: byok keys set {title}",
        )
    return good(f"from {found.source}")


async def _find(around: Surroundings, wanted: KeyWanted) -> FoundKey:
    """Look as the daemon does: in no store for a server on this machine."""
    ladder = await get_ladder(around)
    await open_upstream(around, wanted.name)  # so that its headers are known as secrets
    stores = not is_loopback(wanted.base_url)
    return await in_background(lambda: ladder.find(wanted, stores=stores))


async def _no_key(
    around: Surroundings, wanted: KeyWanted, error: KeyMissing
) -> CheckResult:
    if not (wanted.preset_env or wanted.named_env or wanted.label):
        if is_loopback(wanted.base_url):  # as the daemon does
            return good("it is asked without one, or with a stored one if it refuses")
        return good("none is set: it is asked without one")
    row = await _row_of_daemon(around, wanted)
    if row.get("fingerprint"):
        return good(f"the running daemon has it, from {row.get('source')}")
    return wrong(error.message, error.hint)


async def _daemon_has_it(
    around: Surroundings, wanted: KeyWanted, found: FoundKey
) -> bool:
    """Tell whether the daemon has the key too, where it may have another environment.

    Other sources are the same for both; they are not asked twice, as they may prompt.
    """
    variables = (wanted.named_env, wanted.own_env, wanted.preset_env, _CREDENTIAL)
    if found.source not in variables or await around.running() is None:
        return True
    row = await _row_of_daemon(around, wanted)
    return not row or bool(row.get("fingerprint"))


async def _row_of_daemon(around: Surroundings, wanted: KeyWanted) -> Json:
    """Return what the daemon tells of a key; {} if it tells nothing."""
    answer = await around.ask_if_running(Service.KEYS) or {}
    rows = [row for row in answer.get("keys", ()) if row["upstream"] == wanted.title]
    return rows[0] if rows else {}


async def check_keyring(around: Surroundings, about: str) -> CheckResult:
    """Check that the system has a keyring, where a key would be looked for there."""
    del about
    store = KeyringStore()
    try:
        return good(await in_background(store.backend))
    except ConfigError as error:
        if await _needs_store(around):
            return doubtful(str(error), error.hint)
        return good(f"{error}; nothing needs it, as all keys come from elsewhere")


async def _needs_store(around: Surroundings) -> bool:
    """Tell whether a key was found nowhere, and could be in a keyring."""
    ladder = await get_ladder(around)
    for wanted in await _all_wanted(around):
        if wanted.command or wanted.named_env:
            continue  # no other source counts
        if is_loopback(wanted.base_url) or not (wanted.preset_env or wanted.label):
            continue  # it is asked without a key
        try:
            await in_background(partial(ladder.find, wanted))
        except ConfigError:  # its own check says so
            return True
    return False
