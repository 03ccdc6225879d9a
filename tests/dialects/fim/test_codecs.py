"""FIM: the request of each mode, and how its answer is read."""

from typing import Any

import pytest

from byok.core.chat import ChatRequest, FimRequest, Sampling
from byok.core.errors import UpstreamError
from byok.core.events import Finish, FinishReason, TextDelta
from byok.core.stage import drain
from byok.dialects.base import Target, UpstreamRequest
from byok.dialects.fim.codecs import codecs_of, modes_for
from byok.dialects.fim.templates import PROFILES, FimMode, FimProfile

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
    beta = written(FimMode.SUFFIX, PROFILES["deepseek"])
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
    body = CODECS[mode].encode(chat, target).body
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
