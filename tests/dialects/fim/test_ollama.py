"""Ollama's own endpoint for a gap in code."""

import json

from byok.core.chat import ChatRequest, FimRequest, Sampling
from byok.core.events import Finish, FinishReason, TextDelta
from byok.core.stage import drain
from byok.dialects.base import Target
from byok.dialects.fim_codecs import ollama_codecs
from byok.dialects.fim_templates import FimMode
from tests.fakes.ollama_server import broken_prompt_rules

CHAT = ChatRequest(
    (), fim=FimRequest("def f(", ")\n", one_line=True), sampling=Sampling(0.2, None, 64)
)
CODER = Target("qwen2.5-coder", num_ctx=8192)


def test_the_gap_is_sent_with_the_window_of_chats() -> None:
    request = ollama_codecs()[FimMode.SUFFIX].encode(CHAT, CODER)
    assert request.path == "/api/generate"
    assert broken_prompt_rules(request.body) == []
    assert request.body == {
        "model": "qwen2.5-coder",
        "prompt": "def f(",
        "suffix": ")\n",
        "stream": True,
        "truncate": False,
        "shift": False,
        "think": False,
        "options": {
            "num_ctx": 8192,
            "num_predict": 64,
            "temperature": 0.2,
            "stop": ["\n"],
        },
    }


def test_a_prompt_with_marks_reaches_the_model_as_it_is() -> None:
    body = ollama_codecs()[FimMode.TEMPLATE].encode(CHAT, CODER).body
    assert broken_prompt_rules(body) == []
    assert body["raw"] is True and "suffix" not in body
    assert body["prompt"] == "<|fim_prefix|>def f(<|fim_suffix|>)\n<|fim_middle|>"
    assert body["options"]["stop"][-1] == "\n"


def test_a_gap_at_the_end_of_a_file_is_no_question_of_a_chat() -> None:
    chat = ChatRequest((), fim=FimRequest("x = ", ""))
    body = ollama_codecs()[FimMode.SUFFIX].encode(chat, CODER).body
    assert body["suffix"] == "\n"
    assert body["options"] == {"num_ctx": 8192}


def test_the_completion_is_read_from_lines() -> None:
    codec = ollama_codecs()[FimMode.SUFFIX]
    lines = [
        {"response": "a, ", "done": False},
        {"response": "b", "done": True, "done_reason": "length"},
    ]
    raw = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert [*drain(codec.reader(codec.encode(CHAT, CODER)), [raw])] == [
        TextDelta("a, "),
        TextDelta("b"),
        Finish(FinishReason.LENGTH),
    ]
