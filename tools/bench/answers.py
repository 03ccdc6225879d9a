"""Parse an answer as a client received it, in one of three dialects, and check it."""

import json
from dataclasses import dataclass, field
from typing import Any

from tools.bench.spec import Damaged, Spec, arrival_times, check, check_calls

AUGMENT, OPENAI, ANTHROPIC = "augment", "openai", "anthropic"
_NOTICE = "\n[byok] "


@dataclass
class Reading:
    """The time of a request, and each network read of its answer with its time."""

    asked: float = 0.0
    status: int = 0
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    retry_after: str = ""
    failure: str = ""  # the connection broke


@dataclass
class Answer:
    """A parsed answer; `error` is the code of an error in it, "" for none."""

    pieces: list[tuple[float, str]] = field(default_factory=list)  # (time, text)
    calls: dict[str, list[str]] = field(default_factory=dict)  # id -> arguments
    ends: int = 0  # how many end markers came
    error: str = ""
    whole: str | None = None  # the text at the end, if the dialect repeats it

    @property
    def text(self) -> str:
        """The model's own text, without a notice of byok's."""
        return "".join(text for _, text in self.pieces).partition(_NOTICE)[0]

    def check(self, spec: Spec) -> list[float]:
        """Return the seconds from sending to arrival of each record.

        Raises:
            Damaged: the answer differs from `spec`.
        """
        if self.error or self.ends != 1:
            raise Damaged(f"it ended {self.ends} times, error {self.error!r}")
        sent = check(self.text, spec.stream, spec.chunks)
        if self.whole not in (None, self.text):
            raise Damaged("the text at the end differs from its pieces")
        calls = [(name, "".join(parts)) for name, parts in self.calls.items()]
        check_calls(calls, spec.stream, spec.calls)
        arrived = arrival_times(iter(self.pieces), spec.chunks)
        return [end - start / 1e9 for end, start in zip(arrived, sent, strict=True)]


def parse_answer(reading: Reading, dialect: str) -> Answer:
    """Parse the lines of an answer.

    Raises:
        Damaged: it is no answer of this dialect.
    """
    if reading.failure or reading.status != 200:
        raise Damaged(f"status {reading.status} {reading.failure}")
    answer, partial = Answer(), b""
    parse_line = _PARSERS[dialect]
    for time, data in reading.reads:
        *lines, partial = (partial + data).split(b"\n")
        for line in lines:
            if line.strip():
                _parse_line(parse_line, answer, time, line)
    if partial:
        raise Damaged(f"it broke off within a line: {partial[:80]!r}")
    return answer


def _parse_line(parse_line: Any, answer: Answer, time: float, line: bytes) -> None:
    try:
        parse_line(answer, time, line)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"no line of an answer: {line[:80]!r}") from error


def _parse_augment(answer: Answer, time: float, line: bytes) -> None:
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


def _parse_openai(answer: Answer, time: float, line: bytes) -> None:
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


def _parse_anthropic(answer: Answer, time: float, line: bytes) -> None:
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


_PARSERS = {AUGMENT: _parse_augment, OPENAI: _parse_openai, ANTHROPIC: _parse_anthropic}
