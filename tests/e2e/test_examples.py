"""The example requests, sent through the real daemon and checked as they expect."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.fakes.clients import until_indexed
from tests.fakes.daemon import Answer, Editor, running
from tests.fakes.upstream import FakeUpstream, Script
from tests.fakes.upstream import answer as text_answer

CHATS = (
    "01-chat-stream-plain",
    "02-chat-history-tool-results",
    "03-chat-parallel-tools",
    "04-chat-orphan-tool-result",
    "05-chat-ide-state-edit-events",
    "06-chat-history-summary",
    "07-chat-sdk-minimal",
)
ORPHAN = (
    "[earlier tool result, call not in this conversation: "
    "a record of the past, no format to imitate]"
)

pytestmark = pytest.mark.shared


@dataclass
class Sent:
    """What reached the upstream for one example."""

    example: dict[str, Any]
    request: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.request["messages"]
        return messages

    def of(self, role: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["role"] == role]

    @property
    def calls(self) -> dict[str, str]:
        """Ids of all tool calls in order, with their arguments."""
        return {
            call["id"]: call["function"]["arguments"]
            for message in self.of("assistant")
            for call in message.get("tool_calls", ())
        }

    @property
    def results(self) -> dict[str, str]:
        return {m["tool_call_id"]: m["content"] for m in self.of("tool")}

    def text(self, *roles: str) -> str:
        """All text of the messages of these roles, of all without any."""
        chosen = [m for m in self.messages if not roles or m["role"] in roles]
        return "\n".join(_text(message["content"]) for message in chosen)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content)
    return content or ""


def tools_sent(sent: Sent, expected: bool | int) -> None:
    assert len(sent.request.get("tools", [])) == int(expected)
    assert ("tool_choice" in sent.request) == bool(expected)


def role_note(sent: Sent, note: str) -> None:
    """The second user message carries the picture of call_s1, after its result."""
    assert "call_s1" in note
    second = sent.of("user")[1]
    before = sent.messages[sent.messages.index(second) - 1]
    assert before["tool_call_id"] == "call_s1"
    assert [part["type"] for part in second["content"]] == ["text", "image_url"]
    assert "call_s1" in second["content"][0]["text"]


def orphans_as_text(sent: Sent, named: list[str]) -> None:
    """Each orphan is labelled text of the user, by its id: `call_dup (second)`."""
    blocks = sent.text("user").split(ORPHAN)[1:]
    assert len(blocks) == len(named)
    for block, name in zip(blocks, named, strict=True):
        call_id, _, place = name.partition(" ")
        assert f"\nid: {call_id}\n" in block
        assert not place or f"{place.strip('()')} answer" in block


def parts_of(sent: Sent) -> list[str]:
    """Return the kinds of the parts of the user's messages."""
    contents = [m["content"] for m in sent.of("user") if isinstance(m["content"], list)]
    return [part["type"] for parts in contents for part in parts]


# What each word of an example's expectations names in the request.
FOUND: dict[str, Callable[[Sent], Any]] = {
    "question_appears_times": lambda sent: json.dumps(sent.messages).count(
        sent.example["body"]["message"]
    ),
    "roles": lambda sent: [message["role"] for message in sent.messages],
    "last_role": lambda sent: sent.messages[-1]["role"],
    "error_marked": lambda sent: [
        call_id for call_id, text in sent.results.items() if text.startswith("ERROR: ")
    ],
    "synthetic_result_for": lambda sent: [
        call_id for call_id, text in sent.results.items() if "no result was" in text
    ],
    "tool_calls": lambda sent: [*sent.calls],
    "tool_messages": lambda sent: len(sent.of("tool")),
    "tool_message_content": lambda sent: "|".join(sent.results.values()),
    "arguments_of_call_dup": lambda sent: sent.calls["call_dup"],
    "user_message_is_parts": lambda sent: bool(parts_of(sent)),
    "image_parts": lambda sent: parts_of(sent).count("image_url"),
    "model": lambda sent: "default",  # is the only one; the test looks at its name
}
# What must be in some text, or what must not be in the request.
CONTAINED: dict[str, Callable[[Sent], str]] = {
    "system_contains": lambda sent: sent.text("system"),
    "text_must_contain": lambda sent: sent.text("user"),
    "text_contains": lambda sent: sent.text("user"),
    "must_contain": lambda sent: sent.text(),
}
CHECKS = {check.__name__: check for check in (tools_sent, role_note, orphans_as_text)}


def check_expectation(sent: Sent, key: str, expected: Any) -> None:
    """Check one of an example's expectations."""
    if key in FOUND:
        assert FOUND[key](sent) == expected, key
    elif key in CONTAINED:
        words = [expected] if isinstance(expected, str) else expected
        assert [word for word in words if word not in CONTAINED[key](sent)] == [], key
    elif key == "must_not_contain":
        assert expected not in json.dumps(sent.request)
    else:
        CHECKS[key](sent, expected)


def read_example(shared: Path, name: str) -> dict[str, Any]:
    example: dict[str, Any] = json.loads(
        (shared / "protocol" / f"{name}.json").read_text("utf-8")
    )
    return example


async def post(editor: Editor, example: dict[str, Any]) -> Answer:
    """Send an example with its own headers, but for the token."""
    headers = {k: v for k, v in example["headers"].items() if k != "Authorization"}
    return await editor.post(example["endpoint"], example["body"], headers=headers)


@pytest.mark.parametrize("name", CHATS)
async def test_example_chat_reaches_the_upstream_as_expected(
    name: str, shared: Path, fake: FakeUpstream
) -> None:
    example = read_example(shared, name)
    fake.models = ["qwen2.5-coder:14b"]
    async with running({"upstreams": {"home": {"base_url": fake.url}}}) as editor:
        answer = await post(editor, example)
    assert answer.text == "Hi."
    assert answer.last["stop_reason"] == 1
    [request] = fake.requests
    assert request["model"] == "qwen2.5-coder:14b"
    assert example["expect"]
    for key, expected in example["expect"].items():
        check_expectation(Sent(example, request), key, expected)


async def test_example_get_models_has_flags_as_clients_parse_them(
    shared: Path, fake: FakeUpstream, editor: Editor
) -> None:
    example = read_example(shared, "18-get-models")
    answer = (await post(editor, example)).json
    for flag in example["expect"]["flags_that_must_be_json_strings"]:
        assert isinstance(answer["feature_flags"][flag], str)
        assert isinstance(json.loads(answer["feature_flags"][flag]), dict)
    assert answer["default_model"] in [m["name"] for m in answer["models"]]
    assert fake.requests == []


def lists(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    for key in expect.keys() - {"precondition"}:
        assert answer[key] == expect[key]


def uploaded(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    assert answer == {"blob_names": expect["blob_names"]}


def keys(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    assert sorted(answer) == expect["keys"]
    assert answer["new_checkpoint_id"]


def retrieved(answer: dict[str, Any], expect: dict[str, Any]) -> None:
    text = answer["formatted_retrieval"]
    assert expect["formatted_retrieval_contains"] in text[:400]
    assert expect["formatted_retrieval_lacks"] not in text
    assert (answer["unknown_blob_names"], answer["checkpoint_not_found"]) == ([], False)


async def test_example_blobs_are_uploaded_known_and_searched(
    shared: Path, fake: FakeUpstream, editor: Editor
) -> None:
    for name, check in CONTEXT:
        example = read_example(shared, name)
        answer = await post(editor, example)
        assert answer.status == 200
        check(answer.json, example["expect"])
        if check is uploaded:
            await until_indexed(editor, answer.json["blob_names"])
    assert fake.requests == []


async def test_example_find_missing_before_the_upload(
    shared: Path, fake: FakeUpstream, editor: Editor
) -> None:
    asked = read_example(shared, "20-find-missing-blob-names")
    search = read_example(shared, "23-codebase-retrieval")
    answer = (await post(editor, asked)).json
    found = (await post(editor, search)).json
    assert answer["unknown_blob_names"] == asked["body"]["blob_names"]
    added = search["body"]["blobs"]["added_blobs"]
    assert sorted(found["unknown_blob_names"]) == sorted(added)
    assert "have not been uploaded." in found["formatted_retrieval"]


def edited(answer: Answer, example: dict[str, Any]) -> None:
    assert "never empty text" in example["expect"]["on_upstream_failure"]
    assert answer.json["text"] == "    new\n"


def replaced(answer: Answer, example: dict[str, Any]) -> None:
    """The lines named hold the old text, and the new one ends its lines as that."""
    first, body = answer.lines[0], example["body"]
    for key, line in example.get("expect", {}).get("first_chunk", {}).items():
        assert first[key] == line
    old = body["selected_text"] or body["target_file_content"]
    assert first["replacement_old_text"] == old
    new = "".join(line.get("replacement_text", "") for line in answer.lines)
    assert new == ("    new\r\n" if "\r\n" in old else "    new\n")
    assert first["text"] == ""


def suggested(answer: Answer, example: dict[str, Any]) -> None:
    [line] = answer.lines
    edit, expect, body = line["next_edit"], example["expect"], example["body"]
    file = body["prefix"] + body["selected_text"] + body["suffix"]
    existing = file[edit["char_start"] : edit["char_end"]]
    assert existing == edit["existing_code"] == expect["existing_code_at_offsets"]
    assert edit["char_start"] == expect["utf16_begin_would_be"] - 1
    assert edit["suggested_code"] == "    new\n"


def raw_text(answer: Answer, example: dict[str, Any]) -> None:
    assert "expect" not in example
    assert answer.text == "new"
    assert answer.last["stop_reason"] == 1


Check: TypeAlias = Callable[[Answer, dict[str, Any]], None]
TEXTS: dict[str, tuple[str, Check]] = {
    "10-edit": ("```python\n    new\n```", edited),
    "11-instruction-stream": ("```python\n    new\n```", replaced),
    "12-smart-paste-stream": ("```python\n    new\n```", replaced),
    "13-next-edit-stream": ("EDIT: annotate\n```\n    new\n```", suggested),
    "15-commit-message": ("```\nnew\n```", raw_text),
    "17-prompt-enhancer": ("\nnew\n", raw_text),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_example_text_endpoint_is_answered_as_expected(
    name: str, shared: Path, fake: FakeUpstream, editor: Editor
) -> None:
    example = read_example(shared, name)
    said, check = TEXTS[name]
    fake.play(text_answer(*said))
    answer = await post(editor, example)
    assert answer.status == 200
    check(answer, example)
    assert len(fake.requests) == 1


async def test_example_completion_is_answered_as_expected(
    shared: Path, fake: FakeUpstream, editor: Editor
) -> None:
    example = read_example(shared, "09-completion")
    said = "```python\n    return RATES[kind] * count\n```"
    fake.play(text_answer(said), Script([b"no"], 500))
    done = await post(editor, example)
    example["body"]["suffix"] = "\n"
    failed = await post(editor, example)
    text = "return RATES[kind] * count"
    item = {"text": text, "suffix_replacement_text": "", "skipped_suffix": ""}
    assert (done.status, done.json["completion_items"]) == (200, [item])
    assert done.json["checkpoint_not_found"] is True  # nothing was uploaded
    expect = example["expect"]["on_upstream_failure"]
    assert failed.status == expect["status"]
    assert failed.json["completion_items"] == expect["completion_items"]


CONTEXT: tuple[tuple[str, Callable[[Any, Any], None]], ...] = (
    ("21-batch-upload", uploaded),
    ("19-find-missing-mem-object-names", lists),
    ("20-find-missing-blob-names", lists),
    ("22-checkpoint-blobs", keys),
    ("23-codebase-retrieval", retrieved),
)


def test_every_example_is_sent(shared: Path) -> None:
    sent = {*CHATS, *TEXTS, *(name for name, _ in CONTEXT), "09-completion"}
    names = {path.stem for path in (shared / "protocol").glob("*.json")}
    assert names == {*sent, "18-get-models"}
