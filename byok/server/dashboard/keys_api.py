"""Keys on the page: stored and removed, never shown.

A key is known to the redactor before it is used, and stored for the
origin that the settings in force name. The page says which address its user sees: where
that is another one, because the settings were changed meanwhile, nothing is stored.
"""

import asyncio
import contextlib
from collections.abc import Mapping

from byok.chat import Json
from byok.errors import BadRequest, ConfigError
from byok.keys import KeyWanted, clean_key, fingerprint
from byok.server.control import Control
from byok.server.dashboard.endpoint import PageHandler, PageRequest
from byok.server.dashboard.fields import bad_field, read_text, refuse_empty
from byok.wiring.key_entry import key_named
from byok.wiring.services import Services

_LONGEST_NAME = 80
_LONGEST_KEY = 10_000  # as it is pasted
_LONGEST_ADDRESS = 2000
_OTHER_WAYS = (
    "Store it by command: byok keys set {name} --store vault. "
    "Or set the variable {variable}."
)


def make_key_handlers(
    services: Services, control: Control
) -> Mapping[str, PageHandler]:
    """Return what answers changes of keys."""
    answers = _KeysApi(services, control)
    return {"key-set": answers.set, "key-remove": answers.remove}


class _KeysApi:
    def __init__(self, services: Services, control: Control) -> None:
        self._services = services
        self._control = control

    async def set(self, asked: PageRequest) -> Json:
        """Store a key in the keyring; the answer holds its fingerprint only."""
        # What is no key is not told to the redactor, which forgets nothing: it may be
        # a whole file, or a common word.
        key = clean_key(read_text(asked.body, "key", longest=_LONGEST_KEY))
        wanted = self._find(asked)
        _check_address(
            wanted, read_text(asked.body, "address", longest=_LONGEST_ADDRESS)
        )
        self._services.redactor.add(key)
        keyring = self._services.ladder.keyring
        try:
            await asyncio.to_thread(keyring.set, wanted.entry, key)
        except ConfigError as error:
            raise _with_other_ways(error, wanted) from None
        self._forget(wanted)
        return {
            "name": wanted.title,
            "origin": wanted.origin,
            "fingerprint": fingerprint(key),
        }

    async def remove(self, asked: PageRequest) -> Json:
        """Remove a key from the keyring."""
        wanted = self._find(asked)
        keyring = self._services.ladder.keyring
        removed = await asyncio.to_thread(keyring.remove, wanted.entry)
        self._forget(wanted)
        return {"name": wanted.title, "removed": removed}

    def _find(self, asked: PageRequest) -> KeyWanted:
        name = refuse_empty(
            "name", read_text(asked.body, "name", longest=_LONGEST_NAME)
        )
        if "://" in name:
            raise bad_field("name", "that of an upstream")
        return key_named(name, self._control.settings)

    def _forget(self, wanted: KeyWanted) -> None:
        """Let every key be looked up anew, and this one in the keyring too."""
        self._services.forget_keys()
        if key := self._services.keys.get(wanted.name):
            key.forget()


def _check_address(wanted: KeyWanted, address: str) -> None:
    """Refuse a key that was entered for another address than that in force."""
    with contextlib.suppress(ValueError):  # no address
        if KeyWanted(wanted.name, address).origin == wanted.origin:
            return
    raise BadRequest(
        f"The address of {wanted.title} is now {wanted.base_url}, not the one that was "
        "shown; no key was stored.",
        code="settings_changed",
        hint="Look at the address, then set the key again.",
        status=409,
    )


def _with_other_ways(error: ConfigError, wanted: KeyWanted) -> ConfigError:
    ways = _OTHER_WAYS.format(name=wanted.title, variable=wanted.own_env)
    return error.with_hint(ways)
