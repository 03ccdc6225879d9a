"""Read fields of untrusted JSON: a value of another type counts as absent.

The holder of the fields may itself be any value.
"""

from typing import Any

from byok.core.wire.json_body import parse_json


def read_text(holder: Any, name: str) -> str:
    """Return a field that is a string, "" for anything else."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, str) else ""


def read_object(holder: Any, name: str) -> dict[str, Any]:
    """Return a field that is an object, {} for anything else."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def read_objects(holder: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects in a field that is an array, [] for anything else."""
    return objects_in(holder.get(name) if isinstance(holder, dict) else None)


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in an array, [] for anything else."""
    items = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict)]


def parse_object(text: str) -> dict[str, Any] | None:
    """Parse a text as a JSON object; return None if it is none."""
    try:
        value = parse_json(text.encode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
