"""The user's consent: which host and model may get code or questions, and a pause.

A model on this machine needs none: naming it in the settings is enough. For another
machine, nothing is sent before the user confirmed exactly this host and this model
(`byok embed enable`), or this search server (`byok remote enable`). A file that cannot
be read is no consent. After `byok embed disable` this machine's models get nothing
either, until `enable`.
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
_MOST_BYTES = 4096


class _Kept(Struct, frozen=True):
    """The content of the file."""

    host: str
    model: str
    paused: bool
    off: bool


_NOTHING = _Kept("", "", paused=False, off=False)


class Consent:
    """The kept consent. Its methods read and write a small file, and block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = _read(path)
        self._changing = threading.Lock()

    def allows(self, host: str, model: str, *, is_local: bool) -> bool:
        """Tell whether code and questions may be sent to this host and model.

        `is_local` tells that the host is this machine.
        """
        if self._kept.off:
            return False
        confirmed = (host, model) == (self._kept.host, self._kept.model)
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
        return self._kept.paused

    def give(self, host: str, model: str) -> None:
        """Keep that the user confirmed this host and model; a pause ends."""
        self._change(lambda kept: replace(_NOTHING, host=host, model=model))

    def withdraw(self) -> None:
        """Forget the consent; nothing is sent anywhere until the next one.

        That is so at once, even if the file cannot be written.
        """
        with self._changing:
            self._kept = replace(_NOTHING, paused=self._kept.paused, off=True)
            self._write(self._kept)

    def pause(self) -> None:
        """Keep that filling is stopped."""
        self._change(lambda kept: replace(kept, paused=True))

    def resume(self) -> None:
        """Keep that filling goes on."""
        self._change(lambda kept: replace(kept, paused=False))

    def _change(self, change: Callable[[_Kept], _Kept]) -> None:
        with self._changing:  # else a pause could bring a withdrawn consent back
            kept = change(self._kept)
            self._write(kept)
            self._kept = kept

    def _write(self, kept: _Kept) -> None:
        write_private(self._path, json.encode(kept).decode())


def _read(path: Path) -> _Kept:
    try:
        check_private(path)
        with path.open("rb") as file:
            return json.decode(file.read(_MOST_BYTES), type=_Kept)
    except FileNotFoundError:
        return _NOTHING
    except (ByokError, OSError, MsgspecError, ValueError) as error:
        _log.warning("no consent: %s (%s)", path, type(error).__name__)
        return replace(_NOTHING, off=True)
