"""The setting `tools.repair`: how far tool calls are repaired."""

from enum import StrEnum


class RepairMode(StrEnum):
    """How far tool calls are repaired: never, if certain, or with empty values too."""

    OFF = "off"
    LOSSLESS = "lossless"
    FILL = "fill"
