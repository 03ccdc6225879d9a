"""The user's consent: which host and model may get code or questions, and a pause.

A model on this machine needs no consent: naming it in the settings is enough. To
another machine, nothing is sent before the user confirmed exactly this host and this
model (`byok embed enable`), or this search server (`byok remote enable`). A file that
cannot be read is no consent. After `byok embed disable` models on this machine get
nothing either, until `enable`.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from msgspec import MsgspecError, Struct, json
from msgspec.structs import replace

from byok.core.errors import ByokError, NotAllowed
from byok.core.platform.paths import check_private, write_private

_log = logging.getLogger(__name__)
_MAX_BYTES = 4096


class _StoredConsent(Struct, frozen=True):
    """The content of the consent file."""

    host: str
    model: str
    paused: bool
    off: bool


_NO_CONSENT = _StoredConsent("", "", paused=False, off=False)


class Consent:
    """The stored consent. Its methods read and write a small file, and block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored = _read(path)
        self._changing = threading.Lock()

    def allows(self, host: str, model: str, *, is_local: bool) -> bool:
        """Tell whether code and questions may be sent to this host and model.

        `is_local` tells that the host is this machine.
        """
        if self._stored.off:
            return False
        confirmed = (host, model) == (self._stored.host, self._stored.model)
        return is_local or (bool(host) and confirmed)

    def check(self, host: str, model: str, *, is_local: bool) -> None:
        """Check that code and questions may be sent to this host and model.

        Raises:
            NotAllowed: the user did not confirm it, or switched embeddings off.
        """
        if not self.allows(host, model, is_local=is_local):
            raise NotAllowed(
                f"Nothing is sent to {host} before you confirm it.",
                hint="See what would be sent, and what it costs: byok embed enable",
                code="no_consent",
            )

    @property
    def paused(self) -> bool:
        """Whether the user stopped filling."""
        return self._stored.paused

    def give(self, host: str, model: str) -> None:
        """Store that the user confirmed this host and model; a pause ends."""
        self._change(lambda stored: replace(_NO_CONSENT, host=host, model=model))

    def withdraw(self) -> None:
        """Remove the consent; nothing is sent anywhere until the next one.

        This takes effect at once, even if the file cannot be written.
        """
        with self._changing:
            self._stored = replace(_NO_CONSENT, paused=self._stored.paused, off=True)
            self._write(self._stored)

    def pause(self) -> None:
        """Store that filling is paused."""
        self._change(lambda stored: replace(stored, paused=True))

    def resume(self) -> None:
        """Store that filling goes on."""
        self._change(lambda stored: replace(stored, paused=False))

    def _change(self, change: Callable[[_StoredConsent], _StoredConsent]) -> None:
        with self._changing:  # otherwise a pause could restore a withdrawn consent
            stored = change(self._stored)
            self._write(stored)
            self._stored = stored

    def _write(self, stored: _StoredConsent) -> None:
        write_private(self._path, json.encode(stored).decode())


def _read(path: Path) -> _StoredConsent:
    try:
        check_private(path)
        with path.open("rb") as file:
            return json.decode(file.read(_MAX_BYTES), type=_StoredConsent)
    except FileNotFoundError:
        return _NO_CONSENT
    except (ByokError, OSError, MsgspecError, ValueError) as error:
        _log.warning("no consent: %s (%s)", path, type(error).__name__)
        return replace(_NO_CONSENT, off=True)
