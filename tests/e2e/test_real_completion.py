"""A real llama-server behind byok: completions by /infill, and by chat without it.

Two servers are of use: one with the model tiny-tools, which has no marks for filling,
and one with any model that has them.

    BYOK_LLAMA_SERVER=http://127.0.0.1:8901 BYOK_LLAMA_INFILL=http://127.0.0.1:8911 \
        scripts/test tests/e2e/test_real_completion.py
"""

import os
from typing import Any

import aiohttp
import pytest

from tests.fakes.daemon import Editor, running
from tests.fakes.llama import GREETING, settings

pytestmark = pytest.mark.slow
INFILL = os.environ.get("BYOK_LLAMA_INFILL", "").rstrip("/")
HEAD, TAIL = "def fare(", ")\n"
MOST = 40


@pytest.fixture
def infill() -> str:
    """The address of a server whose model can fill; skips where there is none."""
    if not INFILL:
        pytest.skip("no model that fills gaps: set BYOK_LLAMA_INFILL to its server")
    return INFILL


async def direct(http: aiohttp.ClientSession, url: str, **body: Any) -> tuple[int, Any]:
    """Ask the server itself, for a whole answer."""
    async with http.post(f"{url}/infill", json=body) as response:
        return response.status, await response.json()


async def complete(editor: Editor, **body: Any) -> str:
    asked = {"prompt": HEAD, "suffix": TAIL, "path": "a.py", **body}
    reply = await editor.post("/completion", asked)
    assert reply.status == 200
    text: str = reply.json["text"]
    assert len(reply.json["completion_items"]) == bool(text)
    return text


def chosen(url: str, way: str = "auto") -> dict[str, Any]:
    return {**settings(url), "completion": {"way": way, "max_tokens": MOST}}


async def test_real_fim_model_fills_the_gap(infill: str) -> None:
    gap = {"input_prefix": HEAD, "input_suffix": TAIL}
    async with running(chosen(infill)) as editor:
        _, said = await direct(
            editor.http, infill, **gap, n_predict=MOST, temperature=0
        )
        assert said["prompt"].index(HEAD) < said["prompt"].index(TAIL)
        found = await complete(editor)
    async with running(chosen(infill, "infill")) as editor:
        alone = await complete(editor)
    assert found
    assert said["content"].startswith(found)
    assert found == alone


async def test_real_fim_raw_prompt_gives_the_same(infill: str) -> None:
    gap = {"input_prefix": HEAD, "input_suffix": TAIL, "n_predict": 1}
    async with running(chosen(infill)) as editor:
        _, said = await direct(editor.http, infill, **gap)
        if not said["prompt"].startswith("<|fim_prefix|>"):
            pytest.skip("that model has other marks than qwen2.5-coder")
        found = await complete(editor)
    async with running(chosen(infill, "template")) as editor:
        assert await complete(editor, model="byok:fake:qwen2.5-coder") == found


async def test_real_fim_tokens_in_the_code_are_only_text(infill: str) -> None:
    gap = {"input_suffix": "", "n_predict": 1}
    async with running(chosen(infill)) as editor:
        mark = "<|fim_middle|>"
        _, said = await direct(editor.http, infill, input_prefix=mark, **gap)
        _, bare = await direct(editor.http, infill, input_prefix="", **gap)
        assert await complete(editor, prompt=mark * 3)
    assert said["tokens_evaluated"] > bare["tokens_evaluated"] + 1


async def test_real_model_without_fim_is_asked_in_a_chat(
    llama: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(chosen(llama)) as editor:
        status, said = await direct(editor.http, llama, input_prefix=HEAD)
        with caplog.at_level("INFO"):
            found = await complete(editor)
    assert (status, said["error"]["type"]) == (501, "not_supported_error")
    assert "fake does not fill gaps by infill" in caplog.text
    assert "no completions" not in caplog.text
    async with running(chosen(llama, "chat")) as editor:
        assert await complete(editor) == found
    caplog.clear()
    async with running(chosen(llama, "infill")) as editor:
        assert await complete(editor) == ""
    assert "no completions from fake: refused with 501" in caplog.text


async def test_real_chat_input_completion_ends_the_sentence(llama: str) -> None:
    asked = {"prompt": "Hm, ", "suffix": " please do #A"}
    async with running(settings(llama)) as editor:
        reply = await editor.post("/chat-input-completion", asked)
    assert reply.json["text"] == GREETING
