"""Markup of each family: what is a call, and what is not one."""

import json

import pytest

from byok.toolcalls.text_calls.parsers import (
    Parser,
    Unfinished,
    WrittenCall,
    invoke_parser,
    parse_deepseek,
    parse_functions,
    parse_glm,
    parse_hermes,
    parse_kimi,
    parse_llama,
    parse_mistral,
)
from tests.fakes.linear import check_linear

ARGS = {"path": "a.py", "text": "x\n"}
CALL = WrittenCall("save", ARGS)
TEXT = json.dumps(ARGS)
OBJECT = f'{{"name": "save", "arguments": {TEXT}}}'
dsml = invoke_parser("｜DSML｜")

GOOD: dict[str, tuple[Parser, str, list[WrittenCall]]] = {
    "Hermes": (parse_hermes, f"\n{OBJECT}\n", [CALL]),
    "Hermes, arguments in a string": (
        parse_hermes,
        json.dumps({"name": "save", "arguments": TEXT}),
        [CALL],
    ),
    "Hermes, two": (parse_hermes, f"{OBJECT}\n{OBJECT}", [CALL, CALL]),
    "as OpenAI writes": (
        parse_hermes,
        f'[{{"id": "c1", "type": "function", "function": {OBJECT}}}]',
        [CALL],
    ),
    "Qwen's coder": (
        parse_hermes,
        "\n<function=save>\n<parameter=path>\na.py\n</parameter>\n"
        "<parameter=text>\nx\n\n</parameter>\n</function>\n",
        [CALL],
    ),
    "Llama 3.1": (parse_functions, f"<function=save>{TEXT}</function>", [CALL]),
    "no arguments": (
        parse_functions,
        "<function=save></function>",
        [WrittenCall("save", {})],
    ),
    "GLM": (
        parse_glm,
        "save\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n"
        "<arg_key>text</arg_key><arg_value>x\n</arg_value>\n",
        [CALL],
    ),
    "GLM without arguments": (parse_glm, "save\n", [WrittenCall("save", {})]),
    "Kimi": (
        parse_kimi,
        f"<|tool_call_begin|>functions.save:0<|tool_call_argument_begin|>{TEXT}"
        f"<|tool_call_end|>\n<|tool_call_begin|>save:1<|tool_call_argument_begin|>{TEXT}"
        "<|tool_call_end|>",
        [WrittenCall("save", ARGS, "functions.save:0"),
         WrittenCall("save", ARGS, "save:1")],
    ),
    "DeepSeek R1": (
        parse_deepseek,
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>save\n"
        f"```json\n{TEXT}\n```<｜tool▁call▁end｜>",
        [CALL],
    ),
    "DeepSeek V3.1": (
        parse_deepseek,
        f"<｜tool▁call▁begin｜>save<｜tool▁sep｜>{TEXT}<｜tool▁call▁end｜>",
        [CALL],
    ),
    "DeepSeek V4": (
        dsml,
        '<｜DSML｜invoke name="save"><｜DSML｜parameter name="path" string="true">a.py'
        '</｜DSML｜parameter>\n<｜DSML｜parameter name="n" string="false">5'
        "</｜DSML｜parameter></｜DSML｜invoke>",
        [WrittenCall("save", {"path": "a.py", "n": 5})],
    ),
    "MiniMax": (
        invoke_parser(""),
        '<invoke name="save"><parameter name="path">a.py</parameter></invoke>',
        [WrittenCall("save", {"path": "a.py"})],
    ),
    "Llama": (
        parse_llama,
        f'{{"name": "save", "parameters": {TEXT}}}; {OBJECT}',
        [CALL, CALL],
    ),
    "Mistral": (parse_mistral, f" [{OBJECT}]", [CALL]),
    "Mistral, newer": (
        parse_mistral,
        f"save[CALL_ID]a1[ARGS]{TEXT}[TOOL_CALLS]save[ARGS]{TEXT}",
        [WrittenCall("save", ARGS, "a1"), CALL],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("parse", "text", "calls"), GOOD.values(), ids=GOOD)
def test_text_call_markup_is_parsed(
    parse: Parser, text: str, calls: list[WrittenCall]
) -> None:
    assert parse(text) == calls


@pytest.mark.parametrize("parse", dict.fromkeys(row[0] for row in GOOD.values()))
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "words",
        "{}",
        "[1]",
        '{"name": 5, "arguments": {}}',
        '{"name": "save", "arguments": 5}',
        '{"name": "save", "arguments": {}} and words',
        "<function=save> words </function>",
        "<function=save><parameter=a>b</function>",
        "<function=save>[]</function>",
        "save words<arg_key>a</arg_key> words",
        '<invoke name="save">words</invoke>',
        "<|tool_call_begin|>save<|tool_call_argument_begin|>5<|tool_call_end|>",
        "<｜tool▁call▁begin｜>save<｜tool▁sep｜>x<｜tool▁call▁end｜>",
        "save[ARGS]5",
        "save[ARGS]{} words",
    ],
)
def test_text_call_markup_of_another_kind_is_none(parse: Parser, text: str) -> None:
    if parse is parse_glm and text == "words":
        pytest.skip("that is the name of a tool without arguments")
    assert parse(text) is None


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_hermes, '{"name": "save", "arguments": {"text": "a'),
        (parse_llama, '{"name"'),
        (parse_mistral, 'save[ARGS]{"a": "'),
    ],
)
def test_text_call_markup_that_ends_within_a_value_is_unfinished(
    parse: Parser, text: str
) -> None:
    with pytest.raises(Unfinished):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "piece"),
    [
        (parse_hermes, "<function=a><parameter=b>"),
        (parse_glm, "a<arg_key>b</arg_key><arg_value>"),
        (parse_kimi, "<|tool_call_begin|>a<|tool_call_argument_begin|>"),
        (dsml, '<｜DSML｜invoke name="a"><｜DSML｜parameter name="b">'),
        (parse_mistral, "a[ARGS]{}"),
    ],
)
def test_text_call_markup_without_end_takes_linear_time(
    parse: Parser, piece: str
) -> None:
    check_linear(lambda count: parse(piece * count), 2000)
