"""OpenAI's Chat Completions for clients: decoding bodies, writing answers."""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Any

from msgspec.structs import replace

from byok.core.chat import (
    ImagePart,
    Json,
    ProviderData,
    Sampling,
    TextPart,
    ThinkingPart,
    ToolCall,
    text_of,
)
from byok.core.conversation_builder import make_result
from byok.core.errors import ByokError
from byok.core.events import Usage
from byok.core.wire.encrypted_content import read_encrypted, write_encrypted
from byok.core.wire.sse import DONE
from byok.protocols.v1.block_reply import BlockReply, Question, ReplyHead, make_question
from byok.protocols.v1.fields import (
    count,
    feature_refusal,
    flag,
    mapping,
    number,
    objects,
    openai_error,
    read_data_url,
    read_file_url,
    read_format,
    read_parts,
    refuse_fields,
    strings,
    text,
    write_source,
    wrong_field,
)
from byok.protocols.v1.turns import (
    ToolList,
    Turns,
    read_choice,
    read_freeform,
    write_freeform,
)

_UNSUPPORTED = ("functions", "function_call", "audio", "logprobs", "top_logprobs")
_IGNORED = (
    *("frequency_penalty", "presence_penalty", "logit_bias", "seed", "store"),
    *("prediction", "verbosity", "web_search_options"),
)


def decode_completion(body: Json) -> Question:
    """Decode the body of a chat completion.

    Raises:
        BadRequest: a field is invalid, or byok does not support it.
    """
    refuse_fields(body, _UNSUPPORTED)
    if (count(body, "n") or 1) > 1:
        raise feature_refusal("byok asks for one answer only: n must be 1")
    tools = read_tools(body)
    choice = read_choice(body.get("tool_choice"), tools, _name_of)
    turns = Turns()
    for message in objects(body, "messages"):
        add_message(turns, message)
    chat = replace(
        turns.request(tools),
        client_parallel_tools=flag(body, "parallel_tool_calls") is not False,
        sampling=Sampling(
            number(body, "temperature"),
            number(body, "top_p"),
            count(body, "max_completion_tokens") or count(body, "max_tokens"),
            text(body, "reasoning_effort"),
            strings(body, "stop"),
        ),
        tool_choice=choice,
        json_answer=read_format(mapping(body, "response_format")),
        cache_key=text(body, "prompt_cache_key"),
    )
    options = mapping(body, "stream_options")
    reply = partial(
        CompletionReply,
        freeform=tools.freeform,
        counts=flag(options, "include_usage") is True,
    )
    return make_question(body, chat, reply, tools.left_out, _IGNORED)


def read_tools(body: Json) -> ToolList:
    """Return the tools of a body."""
    tools = ToolList()
    for row in objects(body, "tools"):
        match row.get("type", "function"):
            case "function":
                inner = mapping(row, "function")
                description = text(inner, "description")
                parameters = mapping(inner, "parameters")
                tools.add(text(inner, "name"), description, parameters)
            case "custom":
                tools.add_freeform(mapping(row, "custom"))
            case kind:
                tools.leave_out(str(kind))
    return tools


def _name_of(row: Json) -> str:
    return text(mapping(row, text(row, "type")), "name")


def add_message(turns: Turns, message: Json) -> None:
    """Add one message.

    Raises:
        BadRequest: the message is invalid.
    """
    content = read_parts(message, "content", _read_part)
    match text(message, "role"):
        case "assistant":
            turns.add_answer(_read_answer(message, content))
        case "tool":
            turns.add_result(make_result(text(message, "tool_call_id"), content))
        case role:
            turns.add_message(role, content)


def _read_part(part: Json) -> TextPart | ImagePart:
    match text(part, "type"):
        case "text" | "refusal" as kind:
            return TextPart(text(part, kind))
        case "image_url":
            return read_data_url(text(mapping(part, "image_url"), "url"))
        case "file" if text(file := mapping(part, "file"), "file_data"):
            return read_file_url(text(file, "file_data"), text(file, "filename"))
        case kind:
            raise feature_refusal(f"byok does not translate a part {kind[:60]!r}")


def _read_answer(
    message: Json, content: list[TextPart | ImagePart]
) -> Iterator[TextPart | ThinkingPart | ToolCall]:
    """Read an answer: reasoning, text and calls, in this order."""
    yield from _read_thinking(message)
    if words := text_of(content):
        yield TextPart(words)
    elif refusal := text(message, "refusal"):
        yield TextPart(refusal)
    for row in objects(message, "tool_calls"):
        if not (call_id := text(row, "id")):
            raise wrong_field("the id of a tool call", "a string")
        if text(row, "type") == "custom":
            inner = mapping(row, "custom")
            arguments = write_freeform(text(inner, "input"))
        else:
            inner = mapping(row, "function")
            arguments = text(inner, "arguments") or "{}"
        yield ToolCall(call_id, text(inner, "name"), arguments)


def _read_thinking(message: Json) -> Iterator[ThinkingPart]:
    """Read the reasoning, from the blocks that byok wrote or else from one text."""
    blocks = message.get("reasoning_details")
    if isinstance(blocks, list) and blocks:
        for block in objects(message, "reasoning_details"):
            data = read_encrypted(text(block, "data"))
            yield ThinkingPart(text(block, "text"), data)
        return
    name = "reasoning_content" if message.get("reasoning_content") else "reasoning"
    if isinstance(thought := message.get(name), str) and thought:
        yield ThinkingPart(thought)


class CompletionReply(BlockReply):
    """A writer of a chat completion; `counts`: with the usage in the last chunk.

    Reasoning is in `reasoning_content`, as in the APIs of DeepSeek and many others. A
    block with data of its provider is repeated in `reasoning_details`, as in
    OpenRouter's.
    """

    def __init__(
        self,
        head: ReplyHead,
        *,
        freeform: Collection[str] = (),
        counts: bool = False,
    ) -> None:
        super().__init__(head)
        self._freeform = freeform
        self._counts = counts
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._details: list[Json] = []
        self._tool_calls: list[Json] = []

    def _write_beginning(self) -> Iterable[Json]:
        return (self._chunk({"role": "assistant", "content": ""}),)

    def _write_text(self, text: str) -> Json:
        return self._chunk({"content": text})

    def _close_text(self, text: str) -> Iterable[Json]:
        self._texts.append(text)
        return ()

    def _write_thinking(self, text: str) -> Iterable[Json]:
        return (self._chunk({"reasoning_content": text}),)

    def _close_thinking(
        self, text: str, provider_data: ProviderData | None
    ) -> Iterable[Json]:
        self._thoughts.append(text)
        detail = {"type": "reasoning.encrypted", "index": len(self._details)}
        if provider_data is None:
            if text:
                self._details.append({**detail, "type": "reasoning.text", "text": text})
            return ()
        detail |= {"text": text, "data": write_encrypted(provider_data)}
        self._details.append(detail)
        return (self._chunk({"reasoning_details": [detail]}),)

    def _write_call(self, call: ToolCall) -> Iterable[Json]:
        if call.name in self._freeform:
            custom = {"name": call.name, "input": read_freeform(call.arguments)}
            tool_call = {"id": call.id, "type": "custom", "custom": custom}
        else:
            function = {"name": call.name, "arguments": call.arguments}
            tool_call = {"id": call.id, "type": "function", "function": function}
        self._tool_calls.append(tool_call)
        return (self._chunk({"tool_calls": [{"index": self.calls, **tool_call}]}),)

    def _write_end(self) -> Iterator[Json]:
        last = {"annotations": self._annotations()} if self.sources else {}
        yield self._chunk(last, self.finish.value)
        if self._counts and self.usage:
            yield {**self._chunk({}), "choices": [], "usage": write_usage(self.usage)}
        yield DONE

    def _write_failure(self, error: ByokError) -> Iterable[Json]:
        return (openai_error(error),)

    def whole(self) -> dict[str, Any]:
        """Return a chat.completion."""
        content = "".join(self._texts)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content or (None if self._tool_calls else ""),
            "refusal": None,
        }
        if thought := "".join(self._thoughts):
            message["reasoning_content"] = thought
        if any("data" in detail for detail in self._details):
            message["reasoning_details"] = self._details
        if self._tool_calls:
            message["tool_calls"] = self._tool_calls
        if self.sources:
            message["annotations"] = self._annotations()
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": self.finish.value,
            "logprobs": None,
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": write_usage(self.usage) if self.usage else None,
        }

    def _head(self, kind: str) -> dict[str, Any]:
        head = self.head
        return {
            "id": f"chatcmpl-{head.id}",
            "object": kind,
            "created": head.created,
            "model": head.model,
        }

    def _chunk(self, delta: Json, finish: str | None = None) -> dict[str, Any]:
        chunk = self._head("chat.completion.chunk")
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk["choices"] = [choice]
        if self._counts:
            chunk["usage"] = None
        return chunk

    def _annotations(self) -> list[Json]:
        return [
            {"type": "url_citation", "url_citation": write_source(url, title)}
            for url, title in self.sources.items()
        ]


def write_usage(usage: Usage) -> dict[str, Any]:
    """Write token counts."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
