"""The setting `tools.repair`: how far tool calls are repaired."""

from enum import StrEnum


class RepairMode(StrEnum):
    """How far repair may go: not at all, where it is certain, or with empty values."""

    OFF = "off"
    LOSSLESS = "lossless"
    FILL = "fill"
