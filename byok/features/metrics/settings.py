"""The section [metrics]."""

from pydantic import Field

from byok.settings.section import SettingsSection


class MetricsSettings(SettingsSection):
    """Numbers for Prometheus, with a token of their own (`byok token --metrics`)."""

    enabled: bool = Field(
        False,
        description="Collect numbers, and serve them as GET /metrics on byok's port.",
    )
