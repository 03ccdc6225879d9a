"""FIM: the request of each mode, and how its answer is read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.core.chat import ChatRequest, FimRequest, NextEditRequest, Sampling
from byok.core.errors import UpstreamError
from byok.core.events import Finish, FinishReason, StreamEvent, TextDelta, Usage
from byok.core.stage import drain
from byok.core.wire.sse import ServerSentEvent
from byok.dialects.base import Target, UpstreamRequest, write_request
from byok.dialects.fim_codecs import (
    FimAnswer,
    NextEditCodec,
    codecs_of,
    modes_for,
    next_edit_codecs,
    ollama_codecs,
)
from byok.dialects.fim_templates import (
    TEMPLATES,
    FimMode,
    FimProfile,
    fim_profile_of,
    template_of,
)
from byok.dialects.presets import OPENAI_COMPATIBLE, PRESETS
from tests.fakes.ollama_server import broken_prompt_rules

FILL = FimRequest("def f(", ")\n")
CHAT = ChatRequest((), fim=FILL, sampling=Sampling(0.2, 0.9, 64))
COMMON = {"stream": True, "max_tokens": 64, "temperature": 0.2, "top_p": 0.9}
CODER = "qwen2.5-coder"
DEFAULT = FimProfile()
CODECS = codecs_of(DEFAULT)


def written(
    mode: FimMode, profile: FimProfile = DEFAULT, **extra: Any
) -> UpstreamRequest:
    return codecs_of(profile)[mode].encode(CHAT, Target(CODER, extra))


def test_fim_infill_of_llama_cpp_lies_beside_its_v1() -> None:
    request = written(FimMode.INFILL)
    assert request.path == "/infill"
    assert request.body == {
        "model": CODER,
        "input_prefix": "def f(",
        "input_suffix": ")\n",
        "input_extra": [],
        "cache_prompt": True,
        "stream": True,
        "n_predict": 64,
        "temperature": 0.2,
        "top_p": 0.9,
    }


def test_fim_suffix_is_sent_beside_the_prompt() -> None:
    body = {"model": CODER, "prompt": "def f(", "suffix": ")\n", **COMMON}
    assert written(FimMode.SUFFIX) == UpstreamRequest("completions", body)
    assert written(FimMode.FIM) == UpstreamRequest("fim/completions", body)
    beta = written(FimMode.SUFFIX, fim_profile_of("deepseek"))
    assert beta == UpstreamRequest("/beta/completions", body)


def test_fim_raw_prompt_holds_prefix_and_suffix() -> None:
    request = written(FimMode.TEMPLATE)
    assert request.path == "completions"
    prompt = "<|fim_prefix|>def f(<|fim_suffix|>)\n<|fim_middle|>"
    assert request.body.pop("stop")[0] == "<|endoftext|>"
    assert request.body == {"model": CODER, "prompt": prompt, **COMMON}


@pytest.mark.parametrize("mode", CODECS)
def test_fim_sends_only_set_parameters_and_extra_body(mode: FimMode) -> None:
    chat = ChatRequest((), fim=FILL)
    target = Target(CODER, {"seed": 7, "stream": False})
    body = write_request(CODECS[mode], chat, target)[1].body
    assert not {"max_tokens", "n_predict", "temperature", "top_p"} & set(body)
    assert (body["seed"], body["stream"]) == (7, False)


@pytest.mark.parametrize("mode", CODECS)
def test_fim_single_line_stops_at_a_line_break(mode: FimMode) -> None:
    chat = ChatRequest((), fim=FimRequest("f(", ")", one_line=True))
    body = CODECS[mode].encode(chat, Target(CODER)).body
    assert body["stop"][-1] == "\n"
    assert len(body["stop"]) <= 4
    assert ("stop" in written(mode).body) is (mode is FimMode.TEMPLATE)


def test_fim_of_mistral_answers_like_a_chat() -> None:
    said = b'{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}'
    reader = CODECS[FimMode.FIM].reader(written(FimMode.FIM))
    events = list(drain(reader, [b"data: " + said + b"\n\n"]))
    assert events == [TextDelta("x"), Finish(FinishReason.STOP)]


def test_fim_template_needs_a_known_model() -> None:
    modes = (FimMode.TEMPLATE, FimMode.CHAT)
    assert modes_for(modes, CODER) == [FimMode.TEMPLATE, FimMode.CHAT]
    assert modes_for(modes, "gpt-4.1") == [FimMode.CHAT]
    with pytest.raises(UpstreamError, match=r"no template is known for gpt-4\.1"):
        modes_for([FimMode.TEMPLATE], "gpt-4.1")


# Which FIM modes are tried for which vendor


def test_fim_modes_are_those_that_a_vendor_has() -> None:
    modes = {
        vendor: ", ".join(fim_profile_of(vendor).modes)
        for vendor in (*PRESETS, OPENAI_COMPATIBLE)
    }
    assert {vendor: mode for vendor, mode in modes.items() if mode != "chat"} == {
        "ollama": "suffix, chat",
        "deepseek": "suffix, chat",
        "mistral": "fim, chat",
        "llamacpp": "infill, template, chat",
        **dict.fromkeys(
            ("lmstudio", "vllm", "sglang", "together", OPENAI_COMPATIBLE),
            "template, chat",
        ),
    }


# Raw prompts with the marks of the models


# model -> what a prompt for "a|b" looks like
PROMPTS = {
    "qwen2.5-coder:7b": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    "Qwen/Qwen2.5-Coder-32B-Instruct": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    "Qwen3-Coder-30B-A3B": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
    "codellama:13b-code": "<PRE> a <SUF>b <MID>",
    "meta-llama/CodeLlama-7b-hf": "<PRE> a <SUF>b <MID>",
    "bigcode/starcoder2-15b": "<fim_prefix>a<fim_suffix>b<fim_middle>",
    "granite-code:8b": "<fim_prefix>a<fim_suffix>b<fim_middle>",
    "codeqwen:7b": "<fim_prefix>a<fim_suffix>b<fim_middle>",
    "deepseek-coder-v2:16b": "<｜fim▁begin｜>a<｜fim▁hole｜>b<｜fim▁end｜>",
    "mistralai/Codestral-22B-v0.1": "[SUFFIX]b[PREFIX]a",
    "codegemma:2b": "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>",
}


@pytest.mark.parametrize("model", PROMPTS)
def test_fim_template_uses_the_models_own_tokens(model: str) -> None:
    template = template_of(model)
    assert template is not None
    assert template.prompt("a", "b") == PROMPTS[model]


@pytest.mark.parametrize(
    "model",
    [
        "", "gpt-4.1", "qwen3:8b", "llama3.1", "codellama:70b", "codellama:7b-python",
        "codestral-mamba", "granite3.3:8b", "deepseek-chat", "gemma3",
    ],
)  # fmt: skip
def test_fim_template_is_none_for_other_models(model: str) -> None:
    assert template_of(model) is None


@given(st.data())
def test_fim_template_escapes_its_tokens_in_code(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(TEMPLATES))
    marks = (*row.marks, *row.stop)
    piece = st.sampled_from([*marks, "a", "{prefix}", *{m[0] for m in marks}])
    pieces = st.lists(piece | st.sampled_from([m[:3] for m in marks]), max_size=8)
    code = "".join(data.draw(pieces))
    inert = row.inert(code)
    assert [mark for mark in marks if mark in inert] == []
    assert inert.replace(" ", "") == code.replace(" ", "")
    prompt, plain = row.prompt(code, code), row.prompt("", "")
    for mark in marks:
        assert prompt.count(mark) == plain.count(mark)


# Filling a gap: llama.cpp's answers, and those of everybody else


STOP, LENGTH = Finish(FinishReason.STOP), Finish(FinishReason.LENGTH)


def choice(text: str, finish: str | None = None, **more: Any) -> dict[str, Any]:
    made = {"index": 0, "text": text, "finish_reason": finish}
    return {"choices": [made], "object": "text_completion", **more}


def read(*events: Any) -> list[StreamEvent]:
    """Read events; bytes as they are, anything else as JSON."""
    raw = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in events]
    return list(drain(FimAnswer(), map(ServerSentEvent, raw)))


def test_fim_answer_of_text_completions() -> None:
    usage = {"prompt_tokens": 6, "completion_tokens": 8}
    events = read(choice("a "), choice("b"), choice("", "stop", usage=usage), b"[DONE]")
    assert events == [TextDelta("a "), TextDelta("b"), Usage(6, 8), STOP]


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        ({"stop_type": "eos"}, STOP),
        ({"stop_type": "limit"}, LENGTH),
        ({"stopped_limit": True, "stopped_eos": False}, LENGTH),
        ({"stopped_eos": True}, STOP),
    ],
)
def test_fim_answer_of_llama_cpp_infill(last: dict[str, Any], finish: Finish) -> None:
    more = {"content": "a", "stop": False, "index": 0}
    events = read(more, {"content": "b", "stop": True, **last}, {"content": "late"})
    assert events == [TextDelta("a"), TextDelta("b"), finish]


def test_fim_answer_without_streaming() -> None:
    assert read(choice("ab", "length")) == [TextDelta("ab"), LENGTH]
    assert read({"content": "ab", "stop": True}) == [TextDelta("ab"), STOP]


# Ollama's own endpoint for a gap in code


OLLAMA_CHAT = ChatRequest(
    (), fim=FimRequest("def f(", ")\n", one_line=True), sampling=Sampling(0.2, None, 64)
)
OLLAMA_CODER = Target("qwen2.5-coder", num_ctx=8192)


def test_the_gap_is_sent_with_the_window_of_chats() -> None:
    request = ollama_codecs()[FimMode.SUFFIX].encode(OLLAMA_CHAT, OLLAMA_CODER)
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
    body = ollama_codecs()[FimMode.TEMPLATE].encode(OLLAMA_CHAT, OLLAMA_CODER).body
    assert broken_prompt_rules(body) == []
    assert body["raw"] is True and "suffix" not in body
    assert body["prompt"] == "<|fim_prefix|>def f(<|fim_suffix|>)\n<|fim_middle|>"
    assert body["options"]["stop"][-1] == "\n"


def test_a_gap_at_the_end_of_a_file_is_no_question_of_a_chat() -> None:
    chat = ChatRequest((), fim=FimRequest("x = ", ""))
    body = ollama_codecs()[FimMode.SUFFIX].encode(chat, OLLAMA_CODER).body
    assert body["suffix"] == "\n"
    assert body["options"] == {"num_ctx": 8192}


def test_the_completion_is_read_from_lines() -> None:
    codec = ollama_codecs()[FimMode.SUFFIX]
    lines = [
        {"response": "a, ", "done": False},
        {"response": "b", "done": True, "done_reason": "length"},
    ]
    raw = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert [*drain(codec.reader(codec.encode(OLLAMA_CHAT, OLLAMA_CODER)), [raw])] == [
        TextDelta("a, "),
        TextDelta("b"),
        Finish(FinishReason.LENGTH),
    ]


@pytest.mark.parametrize(
    ("vendor", "mode", "name", "model", "path"),
    [
        ("ollama", FimMode.TEMPLATE, "zeta-2", "zeta-2", "generate"),
        (
            OPENAI_COMPATIBLE,
            FimMode.TEMPLATE,
            "sweep",
            "sweep-next-edit",
            "completions",
        ),
        ("inception", FimMode.EDIT, "mercury", "mercury-coder", "edit/completions"),
    ],
)
def test_a_next_edit_is_asked_where_the_vendor_serves_it(
    vendor: str, mode: FimMode, name: str, model: str, path: str
) -> None:
    asked = NextEditRequest("a = 1\n", "b = 2\n", path="x.py")
    codec = NextEditCodec(name, next_edit_codecs(vendor)[mode])
    chat = ChatRequest((), next_edit=asked)
    request = codec.encode(chat, Target(model))
    assert request.path.endswith(path)
    assert "a = 1" in json.dumps(request.body)
