"""A body of `/api/chat`: text for its calls and pictures, and a weaker `think`.

Its tools and calls stand where those of Chat Completions do; the arguments of a call
are an object, and pictures stand beside the text of a message.
"""

from typing import Any

from byok.chat import Json
from byok.dialects.body_rows import BodyShape
from byok.dialects.openai_chat import changes
from byok.dialects.parameter_rows import drop_parameter
from byok.dialects.records import ABOUT_RECORDS, NO_PICTURE, call_record
from byok.dialects.remedies import Body, RefusedRequest, Remedy, RemedyRow
from byok.errors import RefusalKind
from byok.wire.json_body import write_json

_PICTURES = "images"
_PLAIN = ("role", "content", _PICTURES)


def calls_as_text(body: Json) -> Body:
    """Move tool calls and results into the user's messages, marked as records."""
    if not changes.has_calls(body):
        return dict(body)
    out: list[dict[str, Any]] = []
    asked: dict[str, tuple[str, str]] = {}
    for message in body["messages"]:
        calls = message.get("tool_calls") or ()
        asked |= {call["id"]: _read_call(call["function"]) for call in calls}
        if message["role"] == "tool":
            name, arguments = asked.get(message["tool_call_id"], ("", ""))
            record = call_record(name, arguments, message["content"])
            _say(out, {"role": "user", "content": record})
        elif message["content"] or not calls:
            _say(out, {k: v for k, v in message.items() if k in _PLAIN})
    if out and out[0]["role"] == "system":
        records = {"role": "system", "content": ABOUT_RECORDS}
        out[0] = _join(out[0], records)
    else:
        out.insert(0, {"role": "system", "content": ABOUT_RECORDS})
    return {**body, "messages": out}


def _read_call(function: Json) -> tuple[str, str]:
    return function["name"], write_json(function["arguments"]).decode()


def _say(messages: list[dict[str, Any]], message: dict[str, Any]) -> None:
    """Add a message; templates expect the roles to alternate."""
    if messages and messages[-1]["role"] == message["role"]:
        message = _join(messages.pop(), message)
    messages.append(message)


def _join(one: Json, other: Json) -> dict[str, Any]:
    joined = {**one, "content": f"{one['content']}\n\n{other['content']}"}
    pictures = [*one.get(_PICTURES, ()), *other.get(_PICTURES, ())]
    return {**joined, _PICTURES: pictures} if pictures else joined


def has_pictures(body: Json) -> bool:
    """Tell whether any message contains a picture."""
    return any(message.get(_PICTURES) for message in body.get("messages") or ())


def shows_picture(body: Json) -> bool:
    """Tell whether the newest turn contains a picture."""
    for message in reversed(body["messages"]):
        if message["role"] == "assistant":
            break
        if message.get(_PICTURES):
            return True
    return False


def pictures_as_text(body: Json) -> Body:
    """Put a sentence for each picture below the text of its message."""
    messages = [_without_pictures(message) for message in body.get("messages") or ()]
    return {**body, "messages": messages} if messages else dict(body)


def _without_pictures(message: Json) -> Json:
    pictures = message.get(_PICTURES)
    if not pictures:
        return message
    texts = [message["content"], *[NO_PICTURE] * len(pictures)]
    rest: dict[str, Any] = {k: v for k, v in message.items() if k != _PICTURES}
    return {**rest, "content": "\n\n".join(filter(None, texts))}


_UNCLEAR = (RefusalKind.UNKNOWN, RefusalKind.BAD_PARAMETER)


def _find_think(refused: RefusedRequest) -> tuple[str, str] | None:
    """Find a refused `think`: a level may be no more than on or off to a model."""
    is_named = "think" in refused.text.lower() and "think" in refused.body
    if not is_named or refused.error.kind not in _UNCLEAR:
        return None
    is_level = isinstance(refused.body["think"], str)
    return ("think", "switch" if is_level else "drop")


def _change_think(body: Json, remedy: Remedy) -> Body:
    if remedy.version == "drop":
        return drop_parameter(body, "think")
    is_level = isinstance(body.get("think"), str)
    return {**body, "think": True} if is_level else dict(body)


THINK_ROW = RemedyRow(_find_think, _change_think)

SHAPE = BodyShape(
    tools=changes.read_tools,
    offer=changes.offer_tools,
    called=changes.called_tools,
    begins=changes.is_first_turn,
    has_calls=changes.has_calls,
    calls_as_text=calls_as_text,
    has_pictures=has_pictures,
    shows=shows_picture,
    pictures_as_text=pictures_as_text,
)
