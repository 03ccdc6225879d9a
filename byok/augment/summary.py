"""The history summary node: old exchanges that the client summarised."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import escape

from byok.augment.body import integer, objects, text
from byok.augment.exchanges import HistoryItem, read_exchange
from byok.augment.nodes import Result, UserTurn
from byok.augment.recorded_reply import RecordedReply, drop_notices
from byok.chat import Json, Part, TextPart
from byok.truncate import truncate_middle

MAX_RESULT_CHARS = 8000
MAX_INPUT_CHARS = 2000
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_TEMPLATE = """<earlier_conversation>
{summary}
({beginning_part_dropped_num_exchanges} exchanges dropped)
{middle_part_abridged}
</earlier_conversation>
<recent>
{end_part_full}
</recent>"""


def render_summary(turn: UserTurn) -> UserTurn:
    """Return a turn with the summary's text in the place of its node.

    Tool results beside the node answer calls that are only text now; they are rendered
    as one more exchange instead of as tool messages.
    """
    if turn.summary is None:
        return turn
    beside = HistoryItem(UserTurn(results=turn.results), RecordedReply())
    extra = [beside] if turn.results else []
    shown = render(turn.summary, extra)
    text: tuple[Part, ...] = (TextPart(shown),) if shown.strip() else ()
    images = [image for result in turn.results for image in result.images]
    before = turn.before_summary
    content = (*turn.content[:before], *text, *images, *turn.content[before:])
    return replace(turn, content=content, results=(), asks=True)


def render(node: Json, extra: list[HistoryItem]) -> str:
    """Fill the client's template, or byok's own, in a single pass.

    Values may contain braces or names of placeholders; unknown placeholders stay.
    """
    end = [read_exchange(item) for item in objects(node, "history_end")]
    values: dict[str, Callable[[], str]] = {
        "summary": lambda: drop_notices(text(node, "summary_text")),
        "summarization_request_id": lambda: text(node, "summarization_request_id"),
        "beginning_part_dropped_num_exchanges": lambda: str(
            integer(node, "history_beginning_dropped_num_exchanges")
        ),
        "middle_part_abridged": lambda: drop_notices(
            text(node, "history_middle_abridged_text")
        ),
        "end_part_full": lambda: "\n".join(_exchange(e) for e in [*end, *extra]),
    }

    def fill(match: re.Match[str]) -> str:
        found = values.get(match.group(1))
        return found() if found else match.group()

    template = text(node, "message_template")
    filled = _PLACEHOLDER.sub(fill, template or _TEMPLATE)
    if template and extra and "{end_part_full}" not in template:
        filled += "\n" + "\n".join(_exchange(e) for e in extra)
    return filled


def _exchange(exchange: HistoryItem) -> str:
    turn, reply = exchange.turn, exchange.reply
    said = "\n".join(p.text for p in turn.content if isinstance(p, TextPart))
    parts = [
        *(_result(result) for result in turn.results),
        f"<user>{said}</user>" if said else "",
        f"<assistant>{reply.text}</assistant>" if reply.text else "",
        *(
            f'<tool_use name="{escape(call.name)}" id="{escape(call.id)}">'
            f"{truncate_middle(call.arguments, MAX_INPUT_CHARS)}</tool_use>"
            for call in reply.calls
        ),
    ]
    return "<exchange>" + "".join(filter(None, parts)) + "</exchange>"


def _result(result: Result) -> str:
    error = ' is_error="true"' if result.is_error else ""
    content = truncate_middle(result.content, MAX_RESULT_CHARS)
    return f'<tool_result id="{escape(result.call_id)}"{error}>{content}</tool_result>'
