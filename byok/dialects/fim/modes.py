"""FIM modes: the ways to ask for code between a prefix and a suffix."""

from enum import StrEnum


class FimMode(StrEnum):
    """The fill-in-the-middle (FIM) interface: how a model receives the code around it.

    INFILL is llama.cpp's own endpoint, FIM Mistral's. SUFFIX is the field of that name
    beside the prompt, TEMPLATE a raw prompt with the model's own marks, CHAT a question
    like any other.
    """

    INFILL = "infill"
    SUFFIX = "suffix"
    FIM = "fim"
    TEMPLATE = "template"
    CHAT = "chat"
