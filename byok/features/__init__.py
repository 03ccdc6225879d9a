"""The features, one row each; server, wiring and command line know only this list.

Requests pass the features in this order: the first row decides first whether a model is
asked. A row imports nothing: every command needs the settings, but only the daemon
needs the running part.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from byok.features.base import Feature
    from byok.settings.section import SettingsSection


class FeatureRow(Struct, frozen=True):
    """A feature: its name, and its parts as `module:class` below this package.

    Attributes:
        name: of the feature, and of its section in the settings.
        settings: the class of the section.
        running: the class of the part that runs in the daemon.
        label: begins its lines in `byok status`; "" for the name.
        page_group: the group of its settings on the page; "" for its own, None for no
            settings there.
        answers: describes its answers at /byok/NAME; "" if it gives none.
        command: the help of `byok NAME`, which prints the rows of that answer; "" for
            no command.
    """

    name: str
    settings: str = ""
    running: str = ""
    label: str = ""
    page_group: str | None = ""
    answers: str = ""
    command: str = ""

    def load_settings(self) -> "type[SettingsSection]":
        """Return the class of its section in the settings."""
        section: type[SettingsSection] = self._load(self.settings)
        return section

    def load_running(self) -> "type[Feature]":
        """Return the class of the part that runs in the daemon."""
        feature: type[Feature] = self._load(self.running)
        return feature

    def _load(self, path: str) -> Any:
        return resolve_name(f"{__name__}.{path}")


ROWS: list[FeatureRow] = [
    FeatureRow("loops", "settings:LoopSettings", "loops.guard:LoopGuard"),
    FeatureRow("caps", "settings:CapSettings", "caps:CapKeeper", "cap"),
    FeatureRow(
        "journal",
        "settings:JournalSettings",
        "journal.writer:JournalKeeper",
        page_group="daemon",
    ),
    FeatureRow(
        "metrics",
        "settings:MetricsSettings",
        "metrics.feature:Metrics",
        page_group="daemon",
    ),
    FeatureRow(
        "otel", "otel.settings:OtelSettings", "otel.spans:Spans", page_group=None
    ),
    FeatureRow(
        "capture",
        running="capture.recorder:CaptureRecorder",
        answers="switch capturing on or off",
    ),
    FeatureRow(
        "memory",
        "settings:MemorySettings",
        "memory.feature:ConversationMemory",
        answers="what is remembered of conversations, and forget it",
    ),
    FeatureRow("live", running="live:LiveRequests"),
    FeatureRow("web", "web.settings:WebSettings", "web.feature:WebTools", "web tools"),
]
