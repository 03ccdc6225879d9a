"""The features, one row each; server, wiring and command line know only this list.

The order is that of requests: the first row is asked first whether a model may be
asked. A row imports nothing: settings are needed by every command, the running part by
the daemon alone.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from byok.features.base import Feature
    from byok.settings.section import SettingsSection


class FeatureRow(Struct, frozen=True):
    """A feature: its name, and where its parts are, as `module:class` in its folder.

    `name` is also that of its folder and of its section in the settings, which are in
    `page_group` of the page's settings, "" for a group of their own, None for none.
    `running` is what runs in the daemon. `label` begins its lines in `byok status`, ""
    for the name. `answers` says what it answers at /byok/NAME, "" for nothing; with a
    `command`, which is its help, `byok NAME` prints the rows of that answer.
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
        """Return the class of what runs in the daemon."""
        kind: type[Feature] = self._load(self.running)
        return kind

    def _load(self, place: str) -> Any:
        return resolve_name(f"{__name__}.{self.name}.{place}")


ROWS: list[FeatureRow] = [
    FeatureRow("loops", "settings:LoopSettings", "guard:LoopGuard"),
    FeatureRow("caps", "settings:CapSettings", "feature:CapKeeper", "cap"),
    FeatureRow(
        "journal",
        "settings:JournalSettings",
        "writer:JournalKeeper",
        page_group="daemon",
    ),
    FeatureRow(
        "metrics", "settings:MetricsSettings", "feature:Metrics", page_group="daemon"
    ),
    FeatureRow("otel", "settings:OtelSettings", "spans:Spans", page_group=None),
    FeatureRow(
        "capture",
        running="recorder:CaptureRecorder",
        answers="switch capturing on or off",
    ),
    FeatureRow(
        "memory",
        "settings:MemorySettings",
        "feature:ConversationMemory",
        answers="what is remembered of conversations, and forget it",
    ),
    FeatureRow("live", running="requests:LiveRequests"),
    FeatureRow("web", "settings:WebSettings", "feature:WebTools", "web tools"),
]
