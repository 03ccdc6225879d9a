"""How far the repair of tool calls may go; a setting of the user."""

from enum import StrEnum


class RepairMode(StrEnum):
    """How far repair may go; FILL invents type defaults, at the user's request."""

    OFF = "off"
    LOSSLESS = "lossless"
    FILL = "fill"
