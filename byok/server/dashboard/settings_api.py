"""The settings on the page: read, tried, saved and put in force; a restart."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from byok.core.chat import Json
from byok.core.errors import ConfigError
from byok.server.control import Control, needs_restart
from byok.server.dashboard.editable import Tables, read_changes
from byok.server.dashboard.endpoint import PageHandler, PageRequest, read_text
from byok.server.dashboard.settings_page import SettingsPage, write_faults
from byok.settings.faults import SettingFault
from byok.wiring.key_sources import moved_secrets
from byok.wiring.services import Services

_LONGEST_REVISION = 100


def make_settings_handlers(
    services: Services, control: Control
) -> Mapping[str, PageHandler]:
    """Return what answers the settings panel."""
    answers = _SettingsApi(services, control)
    return {
        "settings": answers.read,
        "settings-check": answers.check,
        "settings-save": answers.save,
        "restart": answers.restart,
    }


class _SettingsApi:
    def __init__(self, services: Services, control: Control) -> None:
        self._services = services
        self._control = control

    async def read(self, asked: PageRequest) -> Json:
        """Return the form, and what of the settings needs a restart."""
        del asked
        return await self._read()

    async def check(self, asked: PageRequest) -> Json:
        """Say what is wrong with changes, and which lines they would change."""
        changes, faults = read_changes(asked.body)
        told = await asyncio.to_thread(self._page().preview, changes)
        told["errors"] = [*write_faults(faults), *told["errors"]]
        return told if not faults else {**told, "lines": [], "more_lines": 0}

    async def save(self, asked: PageRequest) -> Json:
        """Write changes, use them at once, and return the form as it is then."""
        changes, faults = read_changes(asked.body)
        if not faults:
            revision = read_text(asked.body, "revision", longest=_LONGEST_REVISION)
            faults = await self._write(revision, changes)
        if faults:
            return {"errors": write_faults(faults)}
        return {"errors": [], "form": await self._read()}

    async def restart(self, asked: PageRequest) -> Json:
        """Start byok again, as `byok restart` does."""
        del asked
        await self._control.stop(self._control.instance, again=True)
        return {"port": self._control.settings.server.port}

    async def _write(self, revision: str, changes: Any) -> list[SettingFault]:
        found: list[SettingFault] = []
        page = self._page()

        def write() -> bool:
            found.extend(page.write(revision, changes))
            return not found

        await self._control.save(write)
        return found

    async def _read(self) -> dict[str, Any]:
        form = await asyncio.to_thread(self._page().read, self._control.settings)
        status = self._control.status()
        return {
            **form,
            "error": form["error"] or status["error"],
            "restart": status["restart"],
        }

    def _page(self) -> SettingsPage:
        source = self._control.source
        return SettingsPage(
            source.file,
            self._services.paths,
            source.judge,
            source.options,
            needs_restart,
            self._services.redactor.remove_known,
            self._find_moves,
        )

    def _find_moves(self, before: Tables, after: Tables) -> list[SettingFault]:
        """Return which addresses are new to what is sent there."""
        judge = self._control.source.judge
        former = [self._control.settings]
        with contextlib.suppress(ConfigError):  # those in force are left
            former.append(judge(before))
        return moved_secrets(tuple(former), judge(after), self._services.ladder)
