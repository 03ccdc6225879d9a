"""Recorded error answers of real providers: each is told as what it is.

The classes were judged by reading every body: by its status where that says enough,
else by what the name of the item says was tried.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from byok.dialects.error_bodies import refusal_of
from tests.fakes.daemon import Editor
from tests.fakes.replay import bytes_of, recorded

pytestmark = pytest.mark.shared
BY_STATUS = {
    401: "upstream_auth",
    404: "upstream_not_found",
    429: "upstream_rate_limit",
}
BY_NAME = {
    "model-name-suggestion": "upstream_not_found",
    "response-identity": "upstream_not_found",
    "api-error-content-mode": "upstream_not_found",
    "stream-with-invalid-model": "upstream_not_found",
    "rejected-key": "upstream_auth",
    "context-length": "context_length",
    "context-overflow": "context_length",
    "input-past-the-batch": "context_length",
    "rig-strict-schema": "upstream_bad_schema",
    "tools-without-jinja": "upstream_no_tools",
    "image-only": "upstream_no_images",
    "multimodal": "upstream_bad_messages",
    "audio-part": "upstream_bad_messages",
    "document-part": "upstream_bad_messages",
    "anthropic-images": "upstream_bad_messages",
    "custom-llm-within-crew": "upstream_bad_messages",
    "anthropic-completion-error": "upstream_bad_messages",
    "o1-mini-system-role": "upstream_bad_messages",
    "responses-model-http-error": "upstream_bad_parameter",
    "response-format-error": "upstream_bad_parameter",
    "forced-tool-choice": "upstream_bad_parameter",
    "schema-and-grammar": "upstream_bad_parameter",
    "logprobs": "upstream_bad_parameter",
    "invalid-temperature": "upstream_bad_parameter",
}


def class_by_hand(item: dict[str, Any]) -> str:
    """Return the class that the body has for a reader."""
    found = {code for words, code in BY_NAME.items() if words in item["id"]}
    assert len(found) < 2, item["id"]
    return found.pop() if found else BY_STATUS.get(item["status"], "upstream_refused")


def strings(value: Any) -> list[str]:
    """Return all texts of a body that are sentences."""
    if isinstance(value, dict):
        return [s for inner in value.values() for s in strings(inner)]
    if isinstance(value, list):
        return [s for inner in value for s in strings(inner)]
    return [" ".join(str(value).split())] if " " in str(value).strip() else []


def body_of(shared: Path, item: dict[str, Any]) -> Any:
    raw = bytes_of(shared, item)
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode("utf-8", "replace")


def check(sentence: str, body: Any, item: str) -> None:
    """The sentence is readable and holds the provider's own words."""
    assert sentence == " ".join(sentence.split()), item
    assert len(sentence) <= 450, item
    assert sentence.endswith((".", "?", "!", "…")), item
    assert not re.search(r"[{\[]['\"]|\.\.$", sentence), item
    words = [text[:200] for text in strings(body)]
    told = [text for text in words if text.rstrip(" .") in sentence]
    assert told or not words, item


def test_every_recorded_error_has_its_class_and_a_cure(shared: Path) -> None:
    items = recorded(shared, "error")
    classes: dict[str, int] = {}
    for item in items:
        body = body_of(shared, item)
        error = refusal_of(body, item["status"])
        assert error.code == class_by_hand(item), item["id"]
        assert bool(error.hint) is (error.code != "upstream_refused"), item["id"]
        check(error.sentence, body, item["id"])
        classes[error.code] = classes.get(error.code, 0) + 1
    print(len(items), classes)
    assert len(items) > 40
    assert len(classes) >= 6


async def test_recorded_errors_come_through_the_daemon(
    replay_editor: Editor, shared: Path
) -> None:
    """One of each class, as an editor and as an OpenAI client see it."""
    sample = {
        class_by_hand(item): item
        for item in recorded(shared, "error")
        if item["status"] != 429  # byok would wait and ask again
    }
    for code, item in sample.items():
        body, model = body_of(shared, item), f"byok:replay:{item['id']}"
        told = await replay_editor.post("/chat", {"message": "Hi?", "model": model})
        assert (told.status, told.json["error"]["code"]) == (422, code), item["id"]
        check(told.json["message"], body, item["id"])
        reply = await replay_editor.chat(model=model)
        assert "[byok] replay: it answered" in reply.text, item["id"]
        passed = await replay_editor.post("/v1/chat/completions", {"model": model})
        assert passed.status == item["status"], item["id"]
        check(passed.json["error"]["message"], body, item["id"])
