"""The section [otel]."""

from typing import Annotated

from pydantic import AfterValidator, Field

from byok.settings import values
from byok.settings.section import SettingsSection


class OtelSettings(SettingsSection):
    """Spans of requests for OpenTelemetry: facts such as tokens, never any content."""

    endpoint: Annotated[str, AfterValidator(values.official_url)] = Field(
        "",
        description="OTLP/HTTP address of your collector: https, or http on this "
        'machine. "" sends nothing.',
    )
    headers: Annotated[dict[str, str], AfterValidator(values.headers)] = Field(
        {},
        description="Headers of its requests, such as Authorization; their values are "
        "hidden wherever settings are shown.",
    )
