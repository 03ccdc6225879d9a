"""Answers that show tool calls without making one, and words with which agents act.

All are written for these tests. `ANSWERS` are complete answers. `INTRODUCTIONS` are
texts of answers that end with an example, so every form may follow them, and `REMARKS`
are what may follow an example. `ANNOUNCEMENTS` are what agents say before a call.
"""

_TAGGED = (
    '<tool_call>\n{"name": "view", "arguments": {"path": "README.md"}}\n</tool_call>'
)
_BARE = '{"name": "view", "arguments": {"path": "README.md"}}'
_XML = (
    "<tool_call>\n<function=view>\n<parameter=path>\nREADME.md\n</parameter>\n"
    "</function>\n</tool_call>"
)
_INVOKE = (
    '<function_calls>\n<invoke name="view">\n<parameter name="path">README.md'
    "</parameter>\n</invoke>\n</function_calls>"
)
_HARMONY = (
    "<|channel|>commentary to=functions.view <|constrain|>json<|message|>"
    '{"path": "README.md"}<|call|>'
)
_MISTRAL = '[TOOL_CALLS]view[ARGS]{"path": "README.md"}'

ANSWERS: tuple[str, ...] = (
    # documentation
    f"# Tool calling\n\nA model asks for a tool by an object with two keys:\n\n"
    f"```json\n{_BARE}\n```\n\nThe host runs the tool and sends its output back.",
    f"## The Hermes format\n\nEach call stands between two tags:\n\n{_TAGGED}\n\n"
    "Several calls stand one behind the other. The host must not run a call that the "
    "model writes inside of its reasoning.",
    f"Qwen's coding models write XML:\n\n{_XML}\n\nThe values are not escaped, which "
    f"is "
    "why a parser has to look for the closing tag.",
    f"Anthropic's older models used this layout.\n\n{_INVOKE}\n\nToday the API returns "
    "blocks of type `tool_use`.",
    f"gpt-oss puts calls into the commentary channel:\n\n    {_HARMONY}\n\nand stops "
    f"at "
    "`<|call|>`.",
    f"Mistral's tokenizer has a control token for it: {_MISTRAL} is what you see when "
    "the host does not parse it.",
    "| family | what it prints |\n|---|---|\n"
    f"| Hermes | `<tool_call>{_BARE}</tool_call>` |\n| Mistral | `{_MISTRAL}` |\n"
    f"| Llama | `{_BARE}` |\n",
    f"1. The model prints `{_BARE}`.\n2. The host finds the name `view`.\n"
    "3. The host checks the arguments.\n4. The tool runs.",
    "Functions are declared in `tools`. When the model wants one, `finish_reason` is "
    '`tool_calls` and the message holds:\n\n```json\n{"tool_calls": [{"id": "c1", '
    '"type": "function", "function": {"name": "view", "arguments": '
    '"{\\"path\\": \\"README.md\\"}"}}]}\n```\n\nSend the result with the same id.',
    f"Three ways to write the same call:\n\n```\n{_TAGGED}\n```\n\n```\n{_XML}\n```\n\n"
    f"```\n{_INVOKE}\n```",
    f"The grammar is small.\n\n```\n{_TAGGED}\n```",
    f"```xml\n{_INVOKE}\n```\n\nis what the model sees in its prompt.",
    f"{_TAGGED}\n\nis how the model asks for a file; the host answers with "
    "`<tool_response>`.",
    f"{_BARE}\n\nThat is the whole request: a name and its arguments.",
    f"{_BARE} would be enough.",
    f"`{_BARE}` is a call, `view` is not.",
    f"{_MISTRAL}\n\n^ this line should not have reached the user.",
    f"{_HARMONY}\nwas in the answer, so the server did not parse the channel.",
    'view(path="README.md") returns the text of the file, with numbers of lines.',
    'The signature is `view(path: str, line: int = 1)`; call `view(path="README.md")`.',
    # review of a parser
    "The regular expression stops at the first closing tag, so a file that holds "
    "`</tool_call>` cuts the call in two. With this input it returns half:\n\n"
    f"```python\ntext = '''{_TAGGED}'''\nassert parse(text) == [CALL]\n```\n\n"
    "Use a JSON decoder that tells where the value ends.",
    "Two remarks about `parse_tool_calls`:\n\n- it accepts unknown names;\n- it runs "
    f"calls in code fences.\n\nBoth show with:\n\n```text\n{_TAGGED}\n```\n",
    f"In `reader.py`, line 40, the test feeds\n\n{_TAGGED}\n\nin pieces of one "
    f"character. "
    "That is good, but the piece `<` alone is never tried.",
    "I would add a case to the table:\n\n```python\n"
    f'    "mistral": ({_MISTRAL!r}, [CALL]),\n```\n\nand one for the list.',
    "The parser looks fine. One more input is worth a test, because the closing tag is "
    f"missing:\n\n```\n<tool_call>\n{_BARE}\n```",
    "`json.loads` fails here because the model wrote single quotes:\n\n"
    "```\n{'name': 'view', 'arguments': {'path': 'README.md'}}\n```\n\n"
    "`ast.literal_eval` reads it.",
    "The diff changes what is held back:\n\n```diff\n-    if text == '<tool_call>':\n"
    f"+    if text.startswith('<tool_call>'):\n```\n\nso `{_BARE}` is still shown.",
    # fixtures
    f"```json\n{_BARE}\n```\n\nSave this as `tests/data/call.json`.",
    f"Put this into `tests/data/hermes.txt`:\n\n```\n{_TAGGED}\n```",
    f"tests/data/claude.xml:\n\n```xml\n{_INVOKE}\n```",
    f"Here's the content of the fixture:\n\n{_TAGGED}\n",
    f"The new file `calls.jsonl` has one line:\n\n```\n{_BARE}\n```",
    f"CALL = '''{_TAGGED}'''\n\n\ndef test_call():\n    assert parse(CALL)\n",
    f"```python\nCALL = {_BARE}\n\n\ndef test_name():\n    assert CALL['name'] == "
    f"'view'\n"
    "```",
    f"```js\nconst call = {_BARE};\nexpect(parse(call)).toEqual(call);\n```",
    f"const call = {_BARE};",
    f"echo '{_BARE}' | ./host",
    f"cat > call.json <<'EOF'\n{_BARE}\nEOF",
    # settings and data that have the same keys
    '{"name": "my-package", "version": "1.0.0", "arguments": {"path": "README.md"}}',
    '{"name": "view", "version": "1.0.0", "arguments": {"path": "README.md"}}',
    '{"name": "view", "command": "node", "args": ["server.js"], "env": {}}',
    '{"name": "view", "arguments": ["--path", "README.md"]}',
    '{"name": "view", "args": "--path README.md"}',
    '{"name": "view", "description": "Read a file.", "parameters": {"type": "object", '
    '"properties": {"path": {"type": "string"}}, "required": ["path"]}}',
    '{"type": "function", "function": {"name": "view", "description": "Read a file.", '
    '"parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}',
    '{"name": "read-terminal", "parameters": {"type": "object", "properties": {}}}',
    '[{"name": "view", "arguments": {"path": "README.md"}}, {"name": "other", '
    '"arguments": {"path": "b"}}]',
    '{"name": "rm", "arguments": {"path": "README.md"}}',
    '{"tools": [{"name": "view", "parameters": {"path": "string"}}]}',
    '{"mcpServers": {"view": {"command": "npx", "args": ["view"]}}}',
    '{"view": {"path": "README.md"}}',
    '{"scripts": {"view": "less README.md"}, "name": "view"}',
    '{"inputs": [{"name": "view", "type": "string", "default": "README.md"}]}',
    "name: view\narguments:\n  path: README.md\n",
    '[view]\npath = "README.md"\n',
    '{"name": "view", "arguments": {}}',
    '{"name": "view", "arguments": {"path": 5, "lines": true, "x": 1}}',
    '{"name": "view", "arguments": {"path": ["README.md"]}}',
    '{"name": "launch-process", "arguments": {"command": "ls", "wait": "perhaps"}}',
    '{"name": "launch-process", "arguments": {"command": "ls"}}',
    '{"name": "save-file", "arguments": {"path": "a", "content": "b", "mode": "w"}}',
    # incomplete
    '{"name": "view", "arguments": {"path": "README.md"}',
    '{"name": "view", "arguments": {"path": "READ',
    '<tool_call>\n{"name": "view", "arguments": {"path": "README',
    "<tool_call>\n<function=view>\n<parameter=path>\nREADME.md\n",
    "<function=view>\n<parameter=path>README.md</parameter>\n",
    '<invoke name="view">\n<parameter name="path">README.md</parameter>\n',
    '[TOOL_CALLS]view[ARGS]{"path": "README',
    'view(path="README.md"',
    '[view(path="README.md"), view(path="b.py"',
    '<|tool_call>call:view{path:<|"|>README.md',
    '```json\n{"name": "view", "arguments": {"path": "README',
    # calls between prose, and odd ends
    f"First I look. {_BARE} Then I read on, and tell you what it says.",
    f"I'll look at it.\n\n{_TAGGED}\n\nThe file says that the port is 8317.",
    f"I'll look at it.\n\n{_BARE}\n\nThis shows the first lines.",
    f"I'll look at both.\n\n{_TAGGED}\n\nThen the other one:\n\n{_TAGGED}",
    f"I'll view it:\n\n```json\n{_BARE}\n```\n\nPlease wait.",
    f"Let me try: `{_BARE}`",
    f"Let me try: `{_TAGGED}`",
    f"> {_BARE}",
    f"> {_TAGGED}",
    f"- {_BARE}",
    f"    {_BARE} is indented",
    f"Read this:\n\n    {_BARE}",
    f'"{_BARE}"',
    f"'{_TAGGED}'",
    f"({_BARE})",
    f"**{_BARE}**",
    "<tool_call>",
    "<tool_call></tool_call>",
    "<tool_call>\nview the file\n</tool_call>",
    "[TOOL_CALLS] is a control token.",
    "to=functions.view is what harmony writes before the arguments.",
    "<function=view> is an opening tag.",
    "view",
    "view README.md",
    "view the file README.md first, then the tests.",
    "```\nview\n```",
    "Action: view the file\nThen decide.",
    "read-terminal()\n\nreads what the terminal shows.",
    '[{"name": "Ann"}, {"name": "Ben"}]',
    "[1, 2, 3]",
    "[view](docs/view.md) explains it.",
    "[TODO] view the file",
    "{}",
    "[]",
    "{path}",
    "```",
    "```json\n```",
)

INTRODUCTIONS: tuple[str, ...] = (
    "You could call it like this:",
    "You can call the tool like so:",
    "For example:",
    "Here is an example:",
    "A typical call looks like this:",
    "The syntax is:",
    "I've written the fixture; it contains:",
    "I'll show you what that looks like:",
    "Let me illustrate this with a short example:",
    "Let me explain how a call is written:",
    "Let me give you a concrete sample:",
    "I would call it as follows:",
    "If I had to read the file, I would write:",
    "To read the file you would send:",
    "You need to print exactly this:",
    "This is what the parser gets:",
    "Each call stands in tags of its own, e.g.",
    "Imagine that the user asks for the file. The model answers:",
    "Tool calling works in three steps. First the tools are declared. Then the model "
    "answers with a call. At last the host runs it.\n\nThe call in the second step:",
    "# How calls are printed\n\nThere are two layouts. The older one has tags.\n\n"
    "The newer one:",
    "The two layouts differ in the tags "
    "only.\n\n```\n<tool_call>...</tool_call>\n```\n\n"
    "is the older one, and the newer one is:",
    "I changed the parser so that it accepts both. With the old one this was lost:",
    "I reviewed the tool parser. It looks right, but it does not handle this input:",
    "I'll add this to the documentation:",
    "I'll write the call out:",
    "Let me write it out in full:",
    "I'll put it in plain text for you:",
    "Let me quote the log:",
    "I'll reproduce the output here:",
    "Let me paste what the server sent:",
    "I've seen the model print:",
    "I need the parser to accept:",
    "I want the model to answer with:",
    "We need to handle:",
    "We should also support:",
    "I'll use this input in the test:",
    "I'll test the parser with:",
    "Let me run the parser on:",
    "I can call a tool by printing:",
    "I'll save it as tests/data/call.txt:",
    "I'll create the file with one line:",
    "I'll add the missing case to the fixture file:",
    "Qwen:",
    "Here you go:",
    "Here's the call:",
    "Sure! Here's the function call:",
    "Certainly. The call you asked for:",
    "Answer:",
    "Before:\n\nnothing\n\nAfter:",
    "Hosts that do not parse this show it to the user.",
    "Nothing else may stand in such an answer.",
    "So kannst du das Werkzeug aufrufen, zum Beispiel:",
    "Voici un exemple d'appel :",
    "例如，可以这样调用：",
    "例えば、次のように呼び出します：",
)

REMARKS: tuple[str, ...] = (
    "The host then runs the tool.",
    "Replace the path with your own.",
    "Does that help?",
    "Let me know if you want me to run it.",
    "- `name`: the tool\n- `arguments`: an object",
    "```\nthe result\n```",
    "…",
    ".",
    "这会读取文件。",
)

ANNOUNCEMENTS: tuple[str, ...] = (
    "I'll check the file first.",
    "I'll look at the README.",
    "Let me look at the README.",
    "Let me start by reading the README file.",
    "I'll start with the README to see how the project is set up.",
    "Sure! Let me check that right away!",
    "Okay, let me read it.",
    "Now I'll run the tests.",
    "Let's see what the file says.",
    "I need to look at the file before I change anything.",
    "First, I'll search for the definition.",
    "To answer this, I need to read the README.",
    "To view the file, I will use the `view` tool.",
    "I will call the view function to read README.md.",
    "The error comes from the parser. Let me look at it:",
    "The import is missing. I'll verify this by reading the file:",
    "I'm going to inspect the README now.",
    "Great! I found the place. Let me open it.",
    "We need to see the file. Let me open it.",
    "Next, I'll compare it with the tests.",
    "That did not work. Let me retry that!",
    "I'll get the current state of the file for you.",
    "Let me fetch the file for you.",
    "我来查看一下这个文件。",
    "让我先看看 README。",
    "我将使用 view 工具读取文件：",
    "首先，我需要读取文件。",
    "现在运行测试，我先看一下文件。",
    "好的，让我搜索一下相关代码。",
)
