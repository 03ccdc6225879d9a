"""Raw prompts with the marks of the models."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.fim.templates import TEMPLATES, template_of

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
