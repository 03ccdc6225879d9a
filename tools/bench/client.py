"""Request one stream from a target, and record each read with its time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp

from tools.bench.answers import ANTHROPIC, AUGMENT, Reading
from tools.bench.spec import Spec

_TOOL = "write"
_SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
_MAX_TOKENS = 32_000
_FLAGS = {"support_parallel_tool_use": True}
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)


@dataclass(frozen=True)
class Target:
    """A server to measure: base URL, dialect, token, and the process if known."""

    name: str
    url: str
    dialect: str
    token: str = ""
    pid: int = 0
    model: str = "mock"

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request."""
        return {
            "Authorization": f"Bearer {self.token or 'none'}",
            "Content-Type": "application/json",
        }

    def request(self, spec: Spec) -> tuple[str, dict[str, Any]]:
        """Write a request for a stream: its address and body."""
        if self.dialect == AUGMENT:
            body: dict[str, Any] = {
                "message": spec.message,
                "feature_detection_flags": _FLAGS,
            }
            if spec.calls:
                tool = {"name": _TOOL, "description": "", "input_schema": _SCHEMA}
                body["tool_definitions"] = [tool]
            return f"{self.url}/chat-stream", body
        message = {"role": "user", "content": spec.message}
        whole: dict[str, Any] = {
            "model": self.model,
            "stream": True,
            "messages": [message],
        }
        if self.dialect == ANTHROPIC:
            whole["max_tokens"] = _MAX_TOKENS
            if spec.calls:
                whole["tools"] = [{"name": _TOOL, "input_schema": _SCHEMA}]
            return f"{self.url}/messages", whole
        if spec.calls:
            tool = {"name": _TOOL, "description": "", "parameters": _SCHEMA}
            whole["tools"] = [{"type": "function", "function": tool}]
        return f"{self.url}/chat/completions", whole


def session() -> aiohttp.ClientSession:
    """Return a session without a limit of connections."""
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT)


async def ask(
    http: aiohttp.ClientSession,
    target: Target,
    spec: Spec,
    leave: Callable[[int], bool] = lambda reads: False,
) -> Reading:
    """Ask for a stream and read it to its end, or until `leave(reads)` says so."""
    url, body = target.request(spec)
    reading = Reading(asked=time.monotonic())
    try:
        async with http.post(url, json=body, headers=target.headers) as response:
            reading.status = response.status
            reading.retry_after = response.headers.get("Retry-After", "")
            async for data in response.content.iter_any():
                reading.reads.append((time.monotonic(), data))
                if leave(len(reading.reads)):
                    break
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        reading.failure = type(error).__name__
    return reading
