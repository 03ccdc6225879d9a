"""Store provider data in the opaque text that a client keeps beside reasoning.

Each client protocol has a place for it, called `encrypted_content` or `signature`. The
client stores this text and sends it back with the history. It is a JSON object of byok:
a version, the origin, and the provider's data unchanged. Any other text, such as that
of another server or a truncated one, counts as absent.
"""

from byok.core.chat import Origin, ProviderData
from byok.core.wire.json_body import parse_json, write_json

_MARK, _VERSION = "byok", 1
_BEGINNING = f'{{"{_MARK}":'
_ESCAPED_BEGINNING = b'"{\\"' + _MARK.encode() + b'\\":'
_ORIGIN = ("dialect", "upstream", "model")


def write_encrypted(provider_data: ProviderData) -> str:
    """Serialise provider data."""
    origin = provider_data.origin
    envelope = {
        _MARK: _VERSION,
        **{name: getattr(origin, name) for name in _ORIGIN},
        "data": provider_data.data,
    }
    return write_json(envelope).decode()


def holds_encrypted(body: bytes) -> bool:
    """Tell whether a body of JSON seems to hold byok's text in a string."""
    return _ESCAPED_BEGINNING in body


def read_encrypted(text: str) -> ProviderData | None:
    """Parse serialised provider data; return None for any other text."""
    if not text.startswith(_BEGINNING):
        return None
    try:
        envelope = parse_json(text.encode("utf-8", "surrogatepass"), keep_halves=True)
    except (ValueError, RecursionError):
        return None
    if envelope.get(_MARK) != _VERSION:
        return None
    origin, data = [envelope.get(name) for name in _ORIGIN], envelope.get("data")
    if not isinstance(data, dict) or not all(isinstance(name, str) for name in origin):
        return None
    return ProviderData(Origin(*origin), data)
