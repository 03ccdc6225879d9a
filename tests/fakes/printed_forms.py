"""The forms in which models print tool calls, as texts with the calls that they are.

Sources: the chat templates that vendors publish, the parsers of public inference
servers, and reports of calls that arrived as text. Each row is written for this test.
"""

from typing import Any, TypeAlias

Calls: TypeAlias = list[tuple[str, dict[str, Any]]]

TOOLS: dict[str, dict[str, Any]] = {
    "view": {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "line": {"type": "integer"},
            "all": {"type": "boolean"},
            "ranges": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["path"],
    },
    "save-file": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
    "launch-process": {
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "wait": {"type": "boolean"},
            "seconds": {"type": "number"},
            "mode": {"type": "string", "enum": ["quick", "slow"]},
        },
        "required": ["command", "wait"],
    },
    "codebase-retrieval": {
        "type": "object",
        "properties": {"information_request": {"type": "string"}},
        "required": ["information_request"],
    },
    "read-terminal": {"type": "object", "properties": {}},
}

VIEW: Calls = [("view", {"path": "README.md"})]
LINE: Calls = [("view", {"path": "README.md", "line": 3})]
RUN: Calls = [("launch-process", {"command": 'grep -n "a b" *.py', "wait": True})]
SAVE: Calls = [("save-file", {"path": "a.py", "content": "if a < b:\n    f('x')\n"})]
LOOK: Calls = [("read-terminal", {})]
TWO: Calls = [*VIEW, ("view", {"path": "b.py"})]

FORMS: dict[str, tuple[str, Calls]] = {
    # JSON without any mark: qwen2.5-coder, Llama 3, watt-tool, Hammer
    "bare object": ('{"name": "view", "arguments": {"path": "README.md"}}', VIEW),
    "bare object over lines": (
        '{\n  "name": "launch-process",\n  "arguments": {\n    "command": '
        '"grep -n \\"a b\\" *.py",\n    "wait": true\n  }\n}\n',
        RUN,
    ),
    "bare parameters (Llama 3.1)": (
        '{"name": "view", "parameters": {"path": "README.md"}}',
        VIEW,
    ),
    "bare with a type (GPT 5.4)": (
        '{"type": "function", "name": "view", "parameters": {"path": "README.md"}}',
        VIEW,
    ),
    "bare args": ('{"name": "view", "args": {"path": "README.md"}}', VIEW),
    "bare input (Anthropic's block)": (
        '{"type": "tool_use", "id": "toolu_1", "name": "view", '
        '"input": {"path": "README.md"}}',
        VIEW,
    ),
    "bare arguments first": (
        '{"arguments": {"path": "README.md"}, "name": "view"}',
        VIEW,
    ),
    "bare tool_name and parameters (Cohere)": (
        '[{"tool_call_id": "0", "tool_name": "view", "parameters": '
        '{"path": "README.md"}}]',
        VIEW,
    ),
    "bare action and action_input (LangChain)": (
        '{"action": "view", "action_input": {"path": "README.md"}}',
        VIEW,
    ),
    "bare tool and tool_input": (
        '{"tool": "view", "tool_input": {"path": "README.md"}}',
        VIEW,
    ),
    "nested function, arguments in a string (OpenAI)": (
        '{"id": "call_1", "type": "function", "function": {"name": "view", '
        '"arguments": "{\\"path\\": \\"README.md\\"}"}}',
        VIEW,
    ),
    "function as name": (
        '{"function": "view", "parameters": {"path": "README.md"}}',
        VIEW,
    ),
    "functionCall (Gemini)": (
        '{"functionCall": {"name": "view", "args": {"path": "README.md"}}}',
        VIEW,
    ),
    "tool_calls": (
        '{"tool_calls": [{"name": "view", "arguments": {"path": "README.md"}}]}',
        VIEW,
    ),
    "tool_calls with a thought (xLAM)": (
        '{"thought": "I need the file.", "tool_calls": [{"name": "view", '
        '"arguments": {"path": "README.md"}}, {"name": "view", "arguments": '
        '{"path": "b.py"}}]}',
        TWO,
    ),
    "the message of the API": (
        '{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": '
        '"function", "function": {"name": "view", "arguments": '
        '"{\\"path\\":\\"README.md\\"}"}}]}',
        VIEW,
    ),
    "multi_tool_use.parallel": (
        '{"tool_uses": [{"recipient_name": "functions.view", "parameters": '
        '{"path": "README.md"}}, {"recipient_name": "functions.view", "parameters": '
        '{"path": "b.py"}}]}',
        TWO,
    ),
    "bare list (Hammer, xLAM)": (
        '[{"name": "view", "arguments": {"path": "README.md"}}, '
        '{"name": "view", "arguments": {"path": "b.py"}}]',
        TWO,
    ),
    "objects in a row": (
        '{"name": "view", "arguments": {"path": "README.md"}}\n'
        '{"name": "view", "arguments": {"path": "b.py"}}',
        TWO,
    ),
    "objects and semicolons (Llama 3.1)": (
        '{"name": "view", "parameters": {"path": "README.md"}}; '
        '{"name": "view", "parameters": {"path": "b.py"}}',
        TWO,
    ),
    "Python's quotes": (
        "{'name': 'launch-process', 'arguments': {'command': 'grep -n \"a b\" *.py', "
        "'wait': True}}",
        RUN,
    ),
    "a brace too many": (
        '{"name": "view", "arguments": {"path": "README.md"}}}',
        VIEW,
    ),
    # code fences
    "fence json": (
        '```json\n{"name": "view", "arguments": {"path": "README.md"}}\n```',
        VIEW,
    ),
    "fence without a label": (
        '```\n{"name": "view", "arguments": {"path": "README.md"}}\n```\n',
        VIEW,
    ),
    "fence tool_call": (
        '```tool_call\n{"name": "view", "arguments": {"path": "README.md"}}\n```',
        VIEW,
    ),
    "two fences": (
        '```json\n{"name": "view", "arguments": {"path": "README.md"}}\n```\n\n'
        '```json\n{"name": "view", "arguments": {"path": "b.py"}}\n```',
        TWO,
    ),
    "fence xml around tags": (
        '```xml\n<tool_call>\n{"name": "view", "arguments": {"path": "README.md"}}\n'
        "</tool_call>\n```",
        VIEW,
    ),
    "fence tool_code (Gemma 3)": (
        '```tool_code\nview(path="README.md", line=3)\n```',
        LINE,
    ),
    "fence tool_code with print (Gemini)": (
        "```tool_code\nprint(default_api.view(path='README.md', line=3))\n```",
        LINE,
    ),
    "fence python": ('```python\nview(path="README.md")\n```', VIEW),
    # tags around JSON
    "tool_call (Hermes, Qwen)": (
        '<tool_call>\n{"name": "view", "arguments": {"path": "README.md"}}\n'
        "</tool_call>",
        VIEW,
    ),
    "tool_call, two": (
        '<tool_call>\n{"name": "view", "arguments": {"path": "README.md"}}\n'
        '</tool_call>\n<tool_call>\n{"name": "view", "arguments": {"path": "b.py"}}\n'
        "</tool_call>",
        TWO,
    ),
    "tool_call without its closing tag": (
        '<tool_call>\n{"name": "view", "arguments": {"path": "README.md"}}\n',
        VIEW,
    ),
    "tool_call without its opening tag": (
        '{"name": "view", "arguments": {"path": "README.md"}}\n</tool_call>',
        VIEW,
    ),
    "tools (qwen2.5-coder)": (
        '<tools>\n{"name": "view", "arguments": {"path": "README.md"}}\n</tools>',
        VIEW,
    ),
    "tool_calls tag (Jamba, MiniMax M1, Apriel)": (
        '<tool_calls>[{"name": "view", "arguments": {"path": "README.md"}, '
        '"id": "a1"}]</tool_calls>',
        VIEW,
    ),
    "TOOLCALL (Nemotron)": (
        '<TOOLCALL>[{"name": "view", "arguments": {"path": "README.md"}}]</TOOLCALL>',
        VIEW,
    ),
    "function_call (Granite 20B)": (
        '<function_call> {"name": "view", "arguments": {"path": "README.md"}}',
        VIEW,
    ),
    "longcat_tool_call": (
        '<longcat_tool_call>{"name": "view", "arguments": {"path": "README.md"}}'
        "</longcat_tool_call>",
        VIEW,
    ),
    "TOOL_REQUEST (LM Studio)": (
        '[TOOL_REQUEST]{"name": "view", "arguments": {"path": "README.md"}}'
        "[END_TOOL_REQUEST]",
        VIEW,
    ),
    # special tokens around JSON
    "tool_call token (Granite 3, Phi-4-mini)": (
        '<|tool_call|>[{"name": "view", "arguments": {"path": "README.md"}}]',
        VIEW,
    ),
    "tool_call tokens (Phi-4-mini)": (
        '<|tool_call|>[{"name": "view", "arguments": {"path": "README.md"}}]'
        "<|/tool_call|>",
        VIEW,
    ),
    "functools (Phi-4-mini, Firefunction)": (
        'functools[{"name": "view", "arguments": {"path": "README.md"}}]',
        VIEW,
    ),
    "python_tag (Llama 3.1)": (
        '<|python_tag|>{"name": "view", "parameters": {"path": "README.md"}}<|eom_id|>',
        VIEW,
    ),
    "python_tag, a built-in (Llama 3.1)": (
        '<|python_tag|>view.call(path="README.md")',
        VIEW,
    ),
    "plugin (InternLM)": (
        '<|action_start|><|plugin|>\n{"name": "view", "parameters": '
        '{"path": "README.md"}}\n<|action_end|>',
        VIEW,
    ),
    "START_ACTION (Command R7B, A)": (
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "view", '
        '"parameters": {"path": "README.md", "line": 3}}\n]<|END_ACTION|>',
        LINE,
    ),
    "Action and a fence (Command R+)": (
        'Action:\n```json\n[\n    {\n        "tool_name": "view",\n        '
        '"parameters": {\n            "path": "README.md"\n        }\n    }\n]```',
        VIEW,
    ),
    "function call (GigaChat 3)": (
        'function call<|role_sep|>\n{"name": "view", "arguments": '
        '{"path": "README.md"}}<|message_sep|>',
        VIEW,
    ),
    "function_call token (GigaChat 3.1)": (
        '<|function_call|>{"name": "view", "arguments": {"path": "README.md"}}',
        VIEW,
    ),
    "tools_prefix (Apertus)": (
        '<|tools_prefix|>[{"view": {"path": "README.md"}}]<|tools_suffix|>',
        VIEW,
    ),
    "invoke_tool_json (Inkling)": (
        '<|message_model|>view<|content_invoke_tool_json|>{"name": "view", "args": '
        '{"path": "README.md"}}<|end_message|>',
        VIEW,
    ),
    "TOOL_CALLS list (Mistral)": (
        '[TOOL_CALLS][{"name": "view", "arguments": {"path": "README.md"}, '
        '"id": "abcdef123"}]',
        VIEW,
    ),
    # a name, then JSON
    "TOOL_CALLS name (Mistral, marks lost)": (
        '[TOOL_CALLS]view{"path": "README.md"}',
        VIEW,
    ),
    "TOOL_CALLS and ARGS (Devstral, Ministral)": (
        '[TOOL_CALLS]view[ARGS]{"path": "README.md"}'
        '[TOOL_CALLS]view[ARGS]{"path": "b.py"}</s>',
        TWO,
    ),
    "CALL_ID (Mistral Small 3.2)": (
        '[TOOL_CALLS]view[CALL_ID]abcdef123[ARGS]{"path": "README.md"}',
        VIEW,
    ),
    "ARGS alone": ('view[ARGS]{"path": "README.md"}', VIEW),
    "name on a line of its own (GLM-4)": ('view\n{"path": "README.md"}', VIEW),
    ">>> (Functionary 3.2)": ('>>>view\n{"path": "README.md"}', VIEW),
    "recipient (Functionary 2)": (
        '<|from|> assistant\n<|recipient|> view\n<|content|>{"path": "README.md"}'
        "<|stop|>",
        VIEW,
    ),
    "function= with JSON (Llama 3.1, Functionary 3.1)": (
        '<function=view>{"path": "README.md"}</function>',
        VIEW,
    ),
    "Kimi K2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.view:0"
        '<|tool_call_argument_begin|>{"path": "README.md"}<|tool_call_end|>'
        "<|tool_call_begin|>functions.view:1<|tool_call_argument_begin|>"
        '{"path": "b.py"}<|tool_call_end|><|tool_calls_section_end|>',
        TWO,
    ),
    "DeepSeek V3, R1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>view\n"
        '```json\n{"path": "README.md"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        VIEW,
    ),
    "DeepSeek V3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>view<｜tool▁sep｜>"
        '{"path": "README.md"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
        "<｜end▁of▁sentence｜>",
        VIEW,
    ),
    "DeepSeek, misspelt by a distilled model": (
        "<|tool_calls_begin|><|tool_call_begin|>view<|tool_sep|>"
        '{"path": "README.md"}<|tool_call_end|><|tool_calls_end|>',
        VIEW,
    ),
    "Solar Open": (
        "<|tool_calls|><|tool_call:begin|>x7Qa<|tool_call:name|>view"
        '<|tool_call:args|>{"path": "README.md"}<|tool_call:end|><|calls|>',
        VIEW,
    ),
    "PLaMo 3": (
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|>"
        "<|plamo:begin_tool_name:plamo|>view<|plamo:end_tool_name:plamo|>"
        '<|plamo:begin_tool_arguments:plamo|>{"path": "README.md"}'
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
        "<|plamo:end_tool_requests:plamo|>",
        VIEW,
    ),
    "harmony (gpt-oss)": (
        "<|channel|>commentary to=functions.view <|constrain|>json<|message|>"
        '{"path": "README.md"}<|call|>',
        VIEW,
    ),
    "harmony with its role": (
        "<|start|>assistant to=functions.view<|channel|>commentary json<|message|>"
        '{"path": "README.md"}<|call|>',
        VIEW,
    ),
    "harmony without its marks": (
        'commentary to=functions.view json{"path": "README.md"}',
        VIEW,
    ),
    "assistant to= (GPT 5)": (
        'assistant to=functions.view commentary json\n{"path": "README.md"}',
        VIEW,
    ),
    "to= and (json) (GPT 5.6)": (' to=view  (json):{"path": "README.md"}', VIEW),
    "to= with debris (GPT 5.6)": (
        ' to=functions.view  (json 恒一\n{"path": "README.md"}ंалда\n',
        VIEW,
    ),
    "Qwen-Agent": (
        '✿FUNCTION✿: view\n✿ARGS✿: {"path": "README.md"}\n✿RETURN✿',
        VIEW,
    ),
    "ReAct": (
        'Action: view\nAction Input: {"path": "README.md"}\nObservation:',
        VIEW,
    ),
    "Called function (Gemini 3.5)": (
        '[Called function "view" with args: {"path": "README.md"}]',
        VIEW,
    ),
    # keys and values in tags
    "Qwen3-Coder": (
        "<tool_call>\n<function=view>\n<parameter=path>\nREADME.md\n</parameter>\n"
        "<parameter=line>\n3\n</parameter>\n</function>\n</tool_call>",
        LINE,
    ),
    "Qwen3-Coder, a value with marks": (
        "<tool_call>\n<function=save-file>\n<parameter=path>\na.py\n</parameter>\n"
        "<parameter=content>\nif a < b:\n    f('x')\n\n</parameter>\n</function>\n"
        "</tool_call>",
        SAVE,
    ),
    "function= alone (OpenHands)": (
        "<function=view>\n<parameter=path>README.md</parameter>\n</function>",
        VIEW,
    ),
    "Seed-OSS": (
        "<seed:tool_call>\n<function=view>\n<parameter=path>README.md</parameter>\n"
        "<parameter=line>3</parameter>\n</function>\n</seed:tool_call>",
        LINE,
    ),
    "MiniMax M2": (
        '<minimax:tool_call>\n<invoke name="view">\n<parameter name="path">README.md'
        '</parameter>\n<parameter name="line">3</parameter>\n</invoke>\n'
        "</minimax:tool_call>",
        LINE,
    ),
    "MiniMax M3": (
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="view">]<]minimax[>[<path>'
        "README.md]<]minimax[>[</path>]<]minimax[>[<line>3]<]minimax[>[</line>"
        "]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        LINE,
    ),
    "Claude": (
        '<function_calls>\n<invoke name="launch-process">\n<parameter name="command">'
        'grep -n "a b" *.py</parameter>\n<parameter name="wait">true</parameter>\n'
        "</invoke>\n</function_calls>",
        RUN,
    ),
    "Claude, two": (
        '<function_calls>\n<invoke name="view">\n<parameter name="path">README.md'
        '</parameter>\n</invoke>\n<invoke name="view">\n<parameter name="path">b.py'
        "</parameter>\n</invoke>\n</function_calls>",
        TWO,
    ),
    "Claude with its namespace": (
        (
            '<{0}function_calls>\n<{0}invoke name="view">\n<{0}parameter name="path">'
            "README.md</{0}parameter>\n</{0}invoke>\n</{0}function_calls>"
        ).format("ant" + "ml:"),
        VIEW,
    ),
    "Claude, the wrapper lost": (
        '<invoke name="view">\n<parameter name="path">README.md</parameter>\n</invoke>',
        VIEW,
    ),
    "Claude 2": (
        "<function_calls>\n<invoke>\n<tool_name>view</tool_name>\n<parameters>\n"
        "<path>README.md</path>\n<line>3</line>\n</parameters>\n</invoke>\n"
        "</function_calls>",
        LINE,
    ),
    "xai:function_call (Grok)": (
        '<xai:function_call name="view">\n<parameter name="path">README.md</parameter>'
        "\n</xai:function_call>",
        VIEW,
    ),
    "Step-3": (
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>"
        '<steptml:invoke name="view"><steptml:parameter name="path">README.md'
        "</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
        VIEW,
    ),
    "atem (Glimmer)": (
        ' to=view<|message|><atem:function_calls>\n<atem:invoke name="view">\n'
        '<atem:parameter name="path">README.md</atem:parameter>\n</atem:invoke>\n'
        "</atem:function_calls><|eot|>",
        VIEW,
    ),
    "DSML (DeepSeek V3.2)": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="view">\n<｜DSML｜parameter '
        'name="path" string="true">README.md</｜DSML｜parameter>\n<｜DSML｜parameter '
        'name="line" string="false">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n'
        "</｜DSML｜function_calls>",
        LINE,
    ),
    "DSML (DeepSeek V4)": (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="read-terminal">\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        LOOK,
    ),
    "MiniCPM 5": (
        '<function name="view"><param name="path">README.md</param>'
        '<param name="line">3</param></function>',
        LINE,
    ),
    "Kimi K3": (
        '<|open|>tools<|sep|><|open|>call tool="view" index="1"<|sep|><|open|>argument '
        'key="path" type="string"<|sep|>README.md<|close|>argument<|sep|><|open|>'
        'argument key="line" type="number"<|sep|>3<|close|>argument<|sep|><|close|>call'
        "<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>",
        LINE,
    ),
    "GLM 4.5": (
        "<tool_call>view\n<arg_key>path</arg_key>\n<arg_value>README.md</arg_value>\n"
        "<arg_key>line</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        LINE,
    ),
    "GLM 4.7": (
        "<tool_call>view<arg_key>path</arg_key><arg_value>README.md</arg_value>"
        "</tool_call>",
        VIEW,
    ),
    "GLM without arguments": ("<tool_call>read-terminal\n</tool_call>", LOOK),
    "Hunyuan 3": (
        "<tool_calls:opensource>\n<tool_call:opensource>view<tool_sep:opensource>\n"
        "<arg_key:opensource>path</arg_key:opensource>\n<arg_value:opensource>README.md"
        "</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
        VIEW,
    ),
    "LongCat, keys and values": (
        "<longcat_tool_call>view\n<longcat_arg_key>path</longcat_arg_key>\n"
        "<longcat_arg_value>README.md</longcat_arg_value>\n</longcat_tool_call>",
        VIEW,
    ),
    "name and JSON in tool_call (Laguna)": (
        '<tool_call>view\n{"path": "README.md"}</tool_call>',
        VIEW,
    ),
    "use_mcp_tool (MiroThinker)": (
        "<use_mcp_tool>\n<server_name>files</server_name>\n<tool_name>view</tool_name>\n"
        '<arguments>\n{"path": "README.md"}\n</arguments>\n</use_mcp_tool>',
        VIEW,
    ),
    "the tool's name as a tag (Cline)": (
        "<view>\n<path>README.md</path>\n</view>",
        VIEW,
    ),
    "name and arguments as tags": (
        '<tool_call>\n<name>view</name>\n<arguments>{"path": "README.md"}'
        "</arguments>\n</tool_call>",
        VIEW,
    ),
    "invoke that is closed at once": ('<invoke name="read-terminal"/>', LOOK),
    # calls as in code
    "pythonic list (Llama 4, 3.2)": (
        '[view(path="README.md"), view(path="b.py")]',
        TWO,
    ),
    "pythonic with literals": (
        "[launch-process(command='grep -n \"a b\" *.py', wait=True)]",
        RUN,
    ),
    "python_start (Llama 4)": (
        '<|python_start|>[view(path="README.md", line=3)]<|python_end|>',
        LINE,
    ),
    "LFM2": (
        '<|tool_call_start|>[view(path="README.md", line=3)]<|tool_call_end|>',
        LINE,
    ),
    "function_calls with code (OLMo 3)": (
        '<function_calls>\nview(path="README.md")\nview(path="b.py")\n'
        "</function_calls>",
        TWO,
    ),
    "one call (Gorilla)": ('view(path="README.md", line=3)', LINE),
    "an object in brackets": ('view({"path": "README.md"})', VIEW),
    "parameters= (GPT 5.4)": ('view(parameters={"path": "README.md"})', VIEW),
    "Call: (NexusRaven)": ('Call: view(path="README.md")<bot_end>', VIEW),
    "JavaScript": ('functions.view({path: "README.md", line: 3})', LINE),
    "arguments beside the name": (
        '<tool_call>{"name": "view", "path": "README.md"}</tool_call>',
        VIEW,
    ),
    "parameters around all of them": (
        "<function=view><parameters><parameter=path>README.md</parameter></parameters>"
        "</function>",
        VIEW,
    ),
    "code tags (SmolLM3)": ('<code>\nview(path="README.md")\n</code>', VIEW),
    # marks of a call around broken or incomplete ones
    "TOOL_CALLS and a space (Mistral 7B v0.3)": (
        '[TOOL_CALLS] [{"name": "view", "arguments": {"path": "README.md"}, '
        '"id": "Ab1Cd2Ef3"}]</s>',
        VIEW,
    ),
    "a bracket too few before the closing tag": (
        '<tool_call>\n{"name": "save-file", "arguments": {"path": "a.py", "content": '
        "\"if a < b:\\n    f('x')\\n\"}\n</tool_call>",
        SAVE,
    ),
    "function= without its closing tag": ('<function=view>{"path": "README.md"}', VIEW),
    "function= that is opened twice (Llama 3.3)": (
        '<function=view>{"path": "README.md", "line": 3}<function>',
        LINE,
    ),
    "function= that is not closed (Llama 3.3)": (
        '<function=view{"path": "README.md"}</function>',
        VIEW,
    ),
    "harmony, all marks lost": (
        'assistantcommentary to=functions.view json{"path": "README.md"}',
        VIEW,
    ),
    "unused tokens (openPangu)": (
        '[unused11][{"name": "view", "arguments": {"path": "README.md"}}][unused12]',
        VIEW,
    ),
    "tool_call and the end of a turn (EXAONE 4)": (
        '<tool_call>{"name": "view", "arguments": {"path": "README.md"}}</tool_call>'
        "[|endofturn|]",
        VIEW,
    ),
    # Gemma
    "Gemma 4": (
        '<|tool_call>call:view{line:3,path:<|"|>README.md<|"|>}<tool_call|>',
        LINE,
    ),
    "Gemma 4, a value with marks": (
        "<|tool_call>call:save-file{content:<|\"|>if a < b:\n    f('x')\n<|\"|>,path:"
        '<|"|>a.py<|"|>}<tool_call|>',
        SAVE,
    ),
    "FunctionGemma": (
        "<start_function_call>call:view{path:<escape>README.md<escape>}"
        "<end_function_call>",
        VIEW,
    ),
    "default_api (Gemini)": ("call:default_api:view{path:'README.md'}", VIEW),
}
