"""The fields of what the page asks for: exact, because the page is byok's own.

Every function raises BadRequest with status 422 where a field is not what it must be.
"""

from collections.abc import Collection, Mapping
from typing import Any

from byok.errors import BadRequest

_MOST = 2**53  # whole numbers above it are not exact in a page
_LATEST = 1e11  # seconds since 1970


def read_count(body: Mapping[str, Any], name: str, default: int, *, most: int) -> int:
    """Return how many of something are wanted, from 1 to `most`.

    Raises:
        BadRequest: it is another number, or none.
    """
    value = body.get(name, default)
    if type(value) is not int or not 1 <= value <= most:
        raise bad_field(name, f"a whole number from 1 to {most}")
    return value


def read_number(body: Mapping[str, Any], name: str) -> int | None:
    """Return the number of an entry, None if the field is missing.

    Raises:
        BadRequest: it is no such number.
    """
    value = body.get(name)
    if value is not None and (type(value) is not int or not 0 <= value <= _MOST):
        raise bad_field(name, "a whole number")
    return value


def read_time(body: Mapping[str, Any], name: str) -> float | None:
    """Return a time in seconds since 1970, None if the field is missing.

    Raises:
        BadRequest: it is no time.
    """
    value = body.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not 0 <= value <= _LATEST:
        raise bad_field(name, "a time in seconds since 1970")
    return float(value)


def read_flag(body: Mapping[str, Any], name: str) -> bool:
    """Return whether a field is true; it is false if it is missing.

    Raises:
        BadRequest: it is neither true nor false.
    """
    value = body.get(name, False)
    if type(value) is not bool:
        raise bad_field(name, "true or false")
    return value


def read_text(body: Mapping[str, Any], name: str, *, longest: int) -> str:
    """Return a text that can be stored, "" if the field is missing.

    Raises:
        BadRequest: it is no text, or longer than `longest` characters.
    """
    value = body.get(name, "")
    if not isinstance(value, str) or len(value) > longest:
        raise bad_field(name, f"a text of at most {longest} characters")
    return value.encode("utf-8", "replace").decode()


def read_texts(
    body: Mapping[str, Any], name: str, *, most: int, longest: int
) -> list[str]:
    """Return a list of at most `most` texts, empty if the field is missing.

    Raises:
        BadRequest: it is no such list, or a text is longer than `longest` characters.
    """
    value = body.get(name, [])
    if not isinstance(value, list) or len(value) > most:
        raise bad_field(name, f"a list of at most {most}")
    return [read_text({name: one}, name, longest=longest) for one in value]


def refuse_empty(name: str, value: str) -> str:
    """Return a text that says something.

    Raises:
        BadRequest: it is empty, or nothing but spaces.
    """
    if not value.strip():
        raise bad_field(name, "a text that is not empty")
    return value


def read_choice(
    body: Mapping[str, Any],
    name: str,
    allowed: Collection[str],
    default: str | None = None,
) -> str:
    """Return one of the `allowed` words; `default`, if any, where the field is missing.

    Raises:
        BadRequest: it is none of them.
    """
    value = body.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str) or value not in allowed:
        raise bad_field(name, f"one of {', '.join(allowed)}")
    return value


def bad_field(name: str, wanted: str) -> BadRequest:
    """Return the error of a field that is not what it must be, without its value."""
    return BadRequest(f"{name} must be {wanted}.", code="bad_field", status=422)
