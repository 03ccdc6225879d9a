"""A real llama-server behind byok: text, tools, cut calls, stopping, completions.

It runs with the model tiny-tools, whose answers are known: a mark such as #B at the end
of the question chooses one. That model has no marks for filling gaps; a second server
may run with any that has them.

    BYOK_LLAMA_SERVER=http://127.0.0.1:8901 BYOK_LLAMA_INFILL=http://127.0.0.1:8911 \
        scripts/test tests/e2e/test_real_llama.py
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from byok.core.platform.paths import find_paths
from byok.settings import load_settings
from byok.upstream.client import HttpUpstream
from byok.upstream.transport import Transports
from byok.wiring.upstreams import make_spec
from tests.fakes.asker import Key
from tests.fakes.bodies import call_node, exchange, result_node
from tests.fakes.daemon import Editor, running, settings_for
from tests.fakes.patience import PATIENCE

pytestmark = pytest.mark.slow
# Before a test starts, the environment is cleaned.
LLAMA = os.environ.get("BYOK_LLAMA_SERVER", "").rstrip("/")
INFILL = os.environ.get("BYOK_LLAMA_INFILL", "").rstrip("/")
MODEL = "tiny-tools"
GREETING = "Grüße, 世界 🌍👩\u200d👩\u200d👧! Done."
PARAMETERS = {
    "read_file": {"path": "string", "line": "integer"},
    "list_dir": {"dir": "string"},
    "write_file": {"path": "string", "text": "string"},
}
WRITING = ("write_file", {"path": "ü/λ.txt", "text": 'a\n"q"\t🌍'})
# mark -> text as the editor sees it, calls
ANSWERS: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "#A": (GREETING, []),
    "#B": ("", [("read_file", {"path": "src/main.py", "line": 12})]),
    "#C": (
        "Both:\n",
        [("read_file", {"path": "b.txt", "line": 1}), ("list_dir", {"dir": "."})],
    ),
    "#D": ("Now I write.\n", [WRITING]),
    "#E": ("Let me look.\n", [("list_dir", {"dir": "/tmp"})]),
    "#F": ("It is 42.", []),
}


def schema(name: str) -> dict[str, Any]:
    fields = {key: {"type": kind} for key, kind in PARAMETERS[name].items()}
    return {"type": "object", "properties": fields, "required": list(fields)}


OFFERED = [
    {"name": name, "description": "", "input_schema_json": json.dumps(schema(name))}
    for name in PARAMETERS
]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": schema(name)}}
    for name in PARAMETERS
]


@pytest.fixture
async def llama() -> str:
    """The address of a server that has the model; skips where there is none."""
    if not LLAMA:
        pytest.skip("no llama-server: set BYOK_LLAMA_SERVER to the address of one")
    try:
        async with (
            asyncio.timeout(PATIENCE),
            aiohttp.ClientSession() as http,
            http.get(f"{LLAMA}/v1/models") as response,
        ):
            listed = await response.json()
    except (TimeoutError, aiohttp.ClientError) as error:
        pytest.skip(f"BYOK_LLAMA_SERVER is set, but nothing answers: {error}")
    if MODEL not in [row["id"] for row in listed["data"]]:
        pytest.skip(f"that llama-server runs without the model {MODEL}")
    return LLAMA


def settings(llama: str, **fields: Any) -> dict[str, Any]:
    return settings_for(f"{llama}/v1", type="llamacpp", temperature=0, **fields)


@pytest.fixture
async def editor(llama: str) -> AsyncIterator[Editor]:
    """A client of a daemon in front of the server."""
    async with running(settings(llama)) as made:
        yield made


def question(mark: str, **fields: Any) -> dict[str, Any]:
    """Write a request of an OpenAI client."""
    asked = [{"role": "user", "content": f"please do {mark}"}]
    body = {"model": MODEL, "messages": asked, "tools": TOOLS, "temperature": 0}
    return {**body, **fields}


async def passed(editor: Editor, mark: str, **fields: Any) -> dict[str, Any]:
    """Ask through /v1; give the only choice of the answer."""
    got = await editor.post("/v1/chat/completions", question(mark, **fields))
    assert got.status == 200
    (choice,) = got.json["choices"]
    return dict(choice)


@pytest.mark.parametrize("mark", ANSWERS)
async def test_real_llama_answers_an_editor(editor: Editor, mark: str) -> None:
    text, calls = ANSWERS[mark]
    got = await editor.chat(f"please do {mark}", tool_definitions=OFFERED)
    found = [(u["tool_name"], json.loads(u["input_json"])) for u in got.tool_uses]
    assert (got.text, found) == (text, calls)
    assert got.last["stop_reason"] == (3 if calls else 1)
    assert len({u["tool_use_id"] for u in got.tool_uses}) == len(calls)


@pytest.mark.parametrize("dialect", ["anthropic", "openai_responses"])
@pytest.mark.parametrize("mark", ANSWERS)
async def test_real_llama_answers_in_its_other_protocols(
    llama: str, dialect: str, mark: str
) -> None:
    text, calls = ANSWERS[mark]
    async with running(settings(llama, dialect=dialect)) as editor:
        got = await editor.chat(f"please do {mark}", tool_definitions=OFFERED)
        found = [(u["tool_name"], json.loads(u["input_json"])) for u in got.tool_uses]
        assert (got.text, found) == (text, calls)
        results = [result_node(u["tool_use_id"], "ok #A") for u in got.tool_uses]
        if results:
            past = {
                "request_message": f"please do {mark}",
                "response_text": got.text,
                "response_nodes": got.nodes,
            }
            got = await editor.chat(
                "", tool_definitions=OFFERED, chat_history=[past], nodes=results
            )
            assert (got.text, got.last["stop_reason"]) == (GREETING, 1)


async def test_real_llama_thinking_is_kept_apart(editor: Editor) -> None:
    got = await editor.chat("please do #F", tool_definitions=OFFERED)
    (thought,) = [n["thinking"] for n in got.nodes if n["type"] == 8]
    assert "Hm, easy." in thought["summary"]


@pytest.mark.parametrize("mark", ["#A", "#B", "#C", "#D"])
async def test_real_llama_answers_an_openai_client(editor: Editor, mark: str) -> None:
    text, calls = ANSWERS[mark]
    choice = await passed(editor, mark)
    functions = [c["function"] for c in choice["message"].get("tool_calls") or ()]
    assert [(f["name"], json.loads(f["arguments"])) for f in functions] == calls
    assert choice["message"]["content"] == text
    assert choice["finish_reason"] == ("tool_calls" if calls else "stop")


async def test_real_llama_stream_is_forwarded_to_an_openai_client(
    editor: Editor,
) -> None:
    got = await editor.post("/v1/chat/completions", question("#A", stream=True))
    events = got.raw.decode().strip().split("\n\n")
    assert events[-1] == "data: [DONE]"
    deltas = [json.loads(e.removeprefix("data: ")) for e in events[:-1]]
    told = [d["choices"][0]["delta"] for d in deltas if d["choices"]]
    assert "".join(d.get("content") or "" for d in told) == GREETING


@pytest.mark.parametrize("most", [20, 25, 30, 35, 40, 45])
async def test_real_llama_tool_call_that_hits_the_limit_is_not_run(
    llama: str, most: int
) -> None:
    async with running(settings(llama, max_tokens=most)) as editor:
        got = await editor.chat("please do #D", tool_definitions=OFFERED)
        choice = await passed(editor, "#D", max_tokens=most)
    assert choice["finish_reason"] == "length"
    assert got.tool_uses == []
    assert got.text.startswith("Now I write.\n")
    assert got.last["stop_reason"] == 2
    if choice["message"].get("tool_calls"):
        assert "[byok] The model's call of write_file was incomplete" in got.text


async def test_real_llama_answers_a_tool_result(editor: Editor) -> None:
    got = await editor.chat(
        "",
        tool_definitions=OFFERED,
        chat_history=[exchange("please do #B", calls=["call_1"])],
        nodes=[result_node("call_1", "The file says: please do #A")],
    )
    assert (got.text, got.last["stop_reason"]) == (GREETING, 1)


async def test_real_llama_error_is_reported_in_its_words(editor: Editor) -> None:
    long = {"message": "word " * 20_000}
    got = await editor.post("/chat", long)
    assert (got.status, got.json["error"]["code"]) == (422, "context_length")
    assert "exceeds the available context size" in got.json["message"]
    refused = await editor.post("/v1/embeddings", {"model": MODEL, "input": "a"})
    assert refused.status in (400, 422)
    assert "embedding" in refused.json["error"]["message"]


async def busy(editor: Editor, llama: str) -> bool:
    """Tell whether the server generates anything."""
    async with editor.http.get(f"{llama}/slots") as response:
        return any(slot["is_processing"] for slot in await response.json())


@pytest.mark.parametrize("path", ["/chat-stream", "/v1/chat/completions"])
async def test_real_llama_stops_when_the_client_leaves(llama: str, path: str) -> None:
    endless = {"ignore_eos": True, "max_tokens": 3000}
    body = {"message": "Go on.", **question("", stream=True), **endless}
    async with running(settings(llama, extra_body=endless)) as editor:
        headers = {"Authorization": f"Bearer {editor.token}"}
        url = editor.daemon.url + path
        response = await editor.http.post(url, json=body, headers=headers)
        async with asyncio.timeout(PATIENCE):
            assert await response.content.readany()
        assert await busy(editor, llama)
        response.close()
        async with asyncio.timeout(PATIENCE):
            while await busy(editor, llama):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("kind", ["llamacpp", "openai_compatible"])
async def test_real_llama_answers_a_conversation_larger_than_its_window(
    llama: str, kind: str
) -> None:
    """The server tells the window if it is asked, else by the fields of a refusal."""
    past = [exchange("Look around.", "I look.", calls=["call_0"])]
    for number in range(40):
        result = result_node(f"call_{number}", f"{number} words " * 300)
        call = call_node(f"call_{number + 1}", "list_dir", '{"dir": "."}')
        past.append(exchange(nodes=[result], calls=[call]))
    last = result_node("call_40", "The directory says: please do #A")
    asked = settings_for(f"{llama}/v1", type=kind, temperature=0)
    async with running(asked) as editor:
        for _ in range(2):
            got = await editor.chat(
                "", tool_definitions=OFFERED, chat_history=past, nodes=[last]
            )
            assert "error" not in got.last
            assert got.text, "what so small a model says after so much is its own"
            assert "[byok]" not in got.text


async def test_real_llama_reports_its_context_window(llama: str) -> None:
    loaded = load_settings(find_paths().config, settings(llama))
    transports = Transports()
    spec = make_spec("fake", loaded.upstreams["fake"], loaded)
    upstream = HttpUpstream(spec, transports, Key())
    async with aiohttp.ClientSession() as http, http.get(f"{llama}/props") as response:
        props = await response.json()
    window = props["default_generation_settings"]["n_ctx"]
    assert await upstream.known.window(MODEL) == window > 0
    await transports.close()


# Completions

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
