"""Headers of OpenAI's APIs, and of those that are compatible."""

from collections.abc import Mapping


def openai_headers(key: str, auth_header: str) -> Mapping[str, str]:
    """Return the headers of every request; `Authorization` takes `Bearer <key>`."""
    headers = {"Accept": "text/event-stream, application/json"}
    if key:
        is_bearer = auth_header == "Authorization"
        headers[auth_header] = f"Bearer {key}" if is_bearer else key
    return headers
