"""Remedies of Chat Completions: what to change in a request after each refusal."""

from byok.dialects.body_rows import BodyShape, body_rows, most_tools
from byok.dialects.openai_chat import changes
from byok.dialects.openai_chat.quirks import Quirks
from byok.dialects.parameter_rows import drop_row, rename_row
from byok.dialects.remedies import Remedy, RemedyTable, switch_row
from byok.dialects.switch_rows import CHAT_REFUSED

# Parameters that may be dropped without changing the meaning of a request.
_DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "tool_choice",
    "temperature",
    "top_p",
)
_CAPS = {
    "max_completion_tokens": "max_tokens",
    "max_tokens": "max_completion_tokens",
}


_SHAPE = BodyShape(
    tools=changes.read_tools,
    offer=changes.offer_tools,
    called=changes.called_tools,
    begins=changes.is_first_turn,
    has_calls=changes.has_calls,
    calls_as_text=changes.calls_as_text,
    has_pictures=changes.has_pictures,
    shows=changes.shows_picture,
    pictures_as_text=changes.pictures_as_text,
    parameters=(*_DROPPABLE, *_CAPS),
)

# The first row that helps counts.
REMEDIES: RemedyTable = {
    "dialect": switch_row(CHAT_REFUSED),
    **body_rows(_SHAPE),
    "cap": rename_row(_CAPS, unless=_DROPPABLE),
    "parameter": drop_row((*_DROPPABLE, *_CAPS)),
}


def presumed_remedies(quirks: Quirks) -> tuple[Remedy, ...]:
    """Return the remedies that a vendor is known to need."""
    return most_tools(quirks.most_tools)
