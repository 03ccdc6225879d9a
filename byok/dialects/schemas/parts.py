"""Parts of rewriting a tool's JSON Schema: notes, merging, references."""

from collections.abc import Iterable, Mapping
from typing import Any

from byok.chat import Json
from byok.wire.json_body import write_json

_LONGEST_NOTE = 300


def schemas_in(value: Any) -> list[Json]:
    """Return the schemas in a list, [] for anything else."""
    items = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, Mapping)]


def distinct(values: Iterable[Any]) -> list[Any]:
    """Return JSON values without duplicates."""
    return list({write_json(value): value for value in values}.values())


def note(name: str, value: Any) -> str:
    """Describe in words what the schema cannot express."""
    text = write_json(value).decode("utf-8", "replace")
    return f"{name}: {text[:_LONGEST_NOTE]}"


def with_notes(node: dict[str, Any], notes: Iterable[str]) -> dict[str, Any]:
    """Append notes to the description of a schema."""
    if told := "; ".join(notes):
        said = node.get("description")
        node["description"] = f"{said} ({told})" if said else told
    return node


def merge(node: dict[str, Any], part: Json) -> None:
    """Merge one schema of an allOf into another."""
    for key, value in part.items():
        old = node.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            node[key] = {**value, **old}
        elif isinstance(old, list) and isinstance(value, list) and key == "required":
            node[key] = distinct([*old, *value])
        else:
            node.setdefault(key, value)


def target_of(ref: str, root: Json) -> Json | None:
    """Return the target of a reference into the same document, or None."""
    found: Any = root
    for step in ref.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if ref.startswith("#/") and isinstance(found, Mapping) else None
