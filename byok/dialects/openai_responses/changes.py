"""Changes to a body of Responses: without reasoning, or with the prompt as an item."""

from byok.chat import Json
from byok.dialects.remedies import Body


def read_items(body: Json) -> list[Json]:
    """Return the items of the input; the user may have put a text in their place."""
    items = body.get("input")
    return [i for i in items if isinstance(i, dict)] if isinstance(items, list) else []


def without_reasoning(body: Json, last: int | None = None) -> Body:
    """Remove the reasoning items, those up to the place `last` or all."""
    items = read_items(body)
    last = len(items) if last is None else last
    kept = [
        item
        for place, item in enumerate(items)
        if place > last or item.get("type") != "reasoning"
    ]
    return {**body, "input": kept} if items else dict(body)


def instructions_as_item(body: Json) -> Body:
    """Move the system prompt to the beginning of the input."""
    rest = {key: value for key, value in body.items() if key != "instructions"}
    if len(rest) == len(body):
        return rest
    system = {"type": "message", "role": "system", "content": body["instructions"]}
    return {**rest, "input": [system, *read_items(body)]}
