"""Conversations as Gemini's contents: roles, results and pictures."""

from typing import Any

from byok.core.chat import (
    ImagePart,
    Message,
    Origin,
    Part,
    ProviderData,
    Role,
    TextPart,
    ToolCall,
    ToolResult,
)
from byok.dialects.base import Target
from byok.dialects.chat_changes import NO_PICTURE
from byok.dialects.gemini.request import GeminiContents
from byok.dialects.safe_names import Aliases, spell_name

PNG = ImagePart("image/png", "aGk=")
GIF = ImagePart("image/gif", "aGk=")
INLINE = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}


def said(role: Role, *parts: Part) -> Message:
    return Message(role, parts)


def result(call_id: str, content: str, **fields: Any) -> Message:
    return said(Role.TOOL, ToolResult(call_id, "f", content, **fields))


def encode(
    *messages: Message, model: str = "gemini-2.5-pro"
) -> tuple[dict[str, Any], bool]:
    origin = Origin("gemini", "box", model)
    target = Target(model, origin=origin)
    contents = GeminiContents(Aliases(spell_name), target)
    contents.add(messages)
    return contents.fields(), contents.hides_picture


def response(key: str, value: str, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {**more, "name": "f", "response": {key: value}}}


def test_gemini_roles_alternate_and_results_follow_their_calls() -> None:
    data = ProviderData(Origin("gemini", "box", "gemini-2.5-pro"), {"id": "7"})
    body, hides = encode(
        said(Role.SYSTEM, TextPart("Be brief.")),
        said(Role.USER, TextPart("Look.")),
        said(Role.ASSISTANT, ToolCall("a", "f", "{}", data), ToolCall("b", "f", "{}")),
        result("b", "no", is_error=True),
        result("a", ""),
        said(Role.USER, TextPart("And?")),
        said(Role.ASSISTANT, TextPart("Well.")),
        said(Role.USER),
    )
    assert body == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"id": "7", "name": "f", "args": {}}},
                    {"functionCall": {"name": "f", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    response("output", "(no output)", id="7"),
                    response("error", "no"),
                    {"text": "And?"},
                ],
            },
            {"role": "model", "parts": [{"text": "Well."}]},
            {"role": "user", "parts": [{"text": "(no words)"}]},
        ],
    }
    assert not hides


def test_gemini_3_sees_pictures_inside_of_results_and_others_behind_them() -> None:
    history = (
        said(Role.USER, TextPart("Look."), PNG),
        said(Role.ASSISTANT, ToolCall("a", "f", "{}"), ToolCall("b", "f", "{}")),
        result("a", "[image 1 below]", images=(PNG, GIF)),
        result("b", "ok"),
    )
    behind, hides = encode(*history)
    assert hides
    assert behind["contents"][0]["parts"][1] == INLINE
    assert behind["contents"][-1]["parts"] == [
        response("output", "[image 1 below]"),
        response("output", "ok"),
        {"text": "Image 1, output of f (a):"},
        INLINE,
        {"text": "Image 2, output of f (a):"},
        {"text": NO_PICTURE},
    ]
    inside, _ = encode(*history, model="gemini-3-pro")
    first, second, *rest = inside["contents"][-1]["parts"]
    assert first["functionResponse"]["parts"] == [INLINE]
    assert second == response("output", "ok")
    assert rest == [{"text": "Image 2, output of f (a):"}, {"text": NO_PICTURE}]
