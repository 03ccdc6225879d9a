"""An answer as it arrived, in any of three dialects, and whether it is right."""

import json
from dataclasses import dataclass, field
from typing import Any

from tools.bench.spec import Damaged, Spec, check, check_calls, finished

AUGMENT, OPENAI, ANTHROPIC = "augment", "openai", "anthropic"
_NOTICE = "\n[byok] "


@dataclass
class Reading:
    """What a client saw: when it asked, and each network read with its time."""

    asked: float = 0.0
    status: int = 0
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    retry_after: str = ""
    failure: str = ""  # the connection broke


@dataclass
class Answer:
    """The same, understood. `error` is the code of an error that was told."""

    pieces: list[tuple[float, str]] = field(default_factory=list)
    calls: dict[str, list[str]] = field(default_factory=dict)  # id -> arguments
    ends: int = 0  # how often an end was told
    error: str = ""
    whole: str | None = None  # the text once more, where the dialect repeats it

    @property
    def text(self) -> str:
        """The model's own text, without a notice of byok's."""
        return "".join(text for _, text in self.pieces).partition(_NOTICE)[0]

    def check(self, spec: Spec) -> list[float]:
        """Return the seconds that each record was on its way, and the first ever.

        Raises:
            Damaged: it is not exactly what `spec` asked for.
        """
        if self.error or self.ends != 1:
            raise Damaged(f"it ended {self.ends} times, error {self.error!r}")
        sent = check(self.text, spec.stream, spec.chunks)
        if self.whole not in (None, self.text):
            raise Damaged("the text at the end differs from its pieces")
        calls = [(name, "".join(parts)) for name, parts in self.calls.items()]
        check_calls(calls, spec.stream, spec.calls)
        arrived = finished(iter(self.pieces), spec.chunks)
        return [at - then / 1e9 for at, then in zip(arrived, sent, strict=True)]


def understood(reading: Reading, dialect: str) -> Answer:
    """Read the lines of an answer.

    Raises:
        Damaged: it is no answer of this dialect.
    """
    if reading.failure or reading.status != 200:
        raise Damaged(f"status {reading.status} {reading.failure}")
    answer, rest = Answer(), b""
    take = _TAKE[dialect]
    for time, data in reading.reads:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                _take(take, answer, time, line)
    if rest:
        raise Damaged(f"it broke off within a line: {rest[:80]!r}")
    return answer


def _take(take: Any, answer: Answer, time: float, line: bytes) -> None:
    try:
        take(answer, time, line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"no line of an answer: {line[:80]!r}") from error


def _take_augment(answer: Answer, time: float, line: bytes) -> None:
    chunk = json.loads(line)
    if chunk["text"]:
        answer.pieces.append((time, chunk["text"]))
    for node in chunk["nodes"]:
        if node["type"] == 0:
            answer.whole = (answer.whole or "") + node["content"]
        if node["type"] == 5:
            use = node["tool_use"]
            answer.calls.setdefault(use["tool_use_id"], []).append(use["input_json"])
    if "error" in chunk:
        answer.error = chunk["error"]["code"]
    answer.ends += chunk["stop_reason"] is not None


def _take_openai(answer: Answer, time: float, line: bytes) -> None:
    if not line.startswith(b"data:") or line == b"data: [DONE]":
        return
    chunk = json.loads(line[5:])
    if "error" in chunk:
        answer.error = str(chunk["error"].get("code") or "error")
        return
    for choice in chunk["choices"]:
        delta = choice.get("delta") or {}
        if text := delta.get("content"):
            answer.pieces.append((time, text))
        for call in delta.get("tool_calls") or ():
            name = str(call["index"])
            part = call["function"].get("arguments") or ""
            answer.calls.setdefault(name, []).append(part)
        answer.ends += choice.get("finish_reason") is not None


def _take_anthropic(answer: Answer, time: float, line: bytes) -> None:
    if not line.startswith(b"data:"):
        return
    event = json.loads(line[5:])
    if event["type"] == "error":
        answer.error = event["error"].get("type") or "error"
    elif event["type"] == "content_block_delta":
        delta = event["delta"]
        if text := delta.get("text"):
            answer.pieces.append((time, text))
        if part := delta.get("partial_json"):
            answer.calls.setdefault(str(event["index"]), []).append(part)
    answer.ends += event["type"] == "message_stop"


_TAKE = {AUGMENT: _take_augment, OPENAI: _take_openai, ANTHROPIC: _take_anthropic}
