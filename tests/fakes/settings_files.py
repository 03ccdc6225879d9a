"""Settings files as people have them: of clients, and of byok."""

import codecs
from pathlib import Path
from typing import NamedTuple

import pytest

from byok.clients.locations import ClientKind
from byok.settings import example

BOM = codecs.BOM_UTF8
VSCODE, CODEX, OPENCODE = ClientKind.VSCODE, ClientKind.CODEX, ClientKind.OPENCODE
AIDER, CONTINUE = ClientKind.AIDER, ClientKind.CONTINUE


class FileSample(NamedTuple):
    """A settings file of a client; `raw` is None if there is none yet."""

    name: str
    client: ClientKind
    raw: bytes | None


def sample(name: str, client: ClientKind, text: str) -> FileSample:
    return FileSample(name, client, text.encode())


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


PLAIN = """{
    "editor.fontSize": 14,
    "editor.fontFamily": "'JetBrains Mono', Menlo, monospace",
    "files.autoSave": "onFocusChange",
    "workbench.colorTheme": "Default Dark Modern"
}
"""
COMMENTS = """// Settings of this machine. Keep in step with the laptop!
{
  /* ---- editor ---- */
  "editor.tabSize": 2, // as in the guide
  "editor.rulers": [80, /* hard */ 100],

  // "editor.minimap.enabled": false,
  "terminal.integrated.env.linux": { /* nothing yet */ },
  "http.proxy": "http://proxy.example:3128/", // not // a comment: http://
  /* ---- end ---- */
}
// that is all
"""
NESTED = """{
\t"[python]": {
\t\t"editor.defaultFormatter": "charliermarsh.ruff",
\t\t"editor.codeActionsOnSave": {
\t\t\t"source.organizeImports": "explicit"
\t\t}
\t},
\t"[markdown]": { "editor.wordWrap": "on", "x.suggest": { "other": false } },
\t"files.exclude": {
\t\t"**/.git": true, "**/node_modules": true
\t},
\t"python.analysis.extraPaths": []
}"""
STRANGE = """{
    "window.title"   :   "${dirty} \\u2014 ☃ 日本語 \\"quoted\\" \\\\",
    "emoji"
        : "👩‍💻",
    "between" /* key */ : /* and value */ "x" /* and comma */ ,
    "regex": "^//.*/\\\\*$",
    "numbers": [-0, 1e9, 2.50E-3],
    "nothing": null
}
"""
AUGMENT = """{
    "augment.chat.userGuidelines": "Answer in short sentences.",
    "augment.advanced.apiToken": "0123-of-the-official-service", // keep!
    "augment.advanced.completionURL": "https://d1.api.example/",
    "augment.nextEdit.enableBackgroundSuggestions": true
}
"""
OBJECT = """{
  "augment.advanced": {
    "mcpServers": [
      { "name": "docs", "command": "npx", "args": ["-y", "@docs/mcp"] }
    ],
  },
  "git.autofetch": true,
}
"""
BOTH = """{
  "augment.advanced.completionURL": "https://old.example/",
  "augment.advanced": { "apiToken": "official-token-0123", "x": [1] },
  "z": 1
}
"""
TOML = """# ~/.codex/config.toml
model = "gpt-5.2-codex"          # the default
model_reasoning_effort = 'high'
approval_policy = "on-request"

# where the tools are
[mcp_servers.docs]
command = "npx"
args = ["-y",   "@docs/mcp"]     # spaces on purpose
env = { "TOKEN" = "abc" }

[projects."/home/me/src"]
trust_level = "trusted"
"""
PROVIDERS = """model_provider = "azure"
model = "gpt-5"

[model_providers.azure]
name = "Azure"
base_url = "https://me.openai.azure.com/openai"
env_key = "AZURE_OPENAI_API_KEY"
query_params = { api-version = "2025-04-01-preview" }

[tui]
notifications = true

[model_providers.local]   # out of order
name = "Local"
base_url = "http://localhost:11434/v1"
"""
PROSE = '''[profiles.fast]
model = "gpt-5-mini"
instructions = """
[not.a.table]
model = "not this one"
"""
# the end, without a newline'''
OWN_PROVIDER = """[model_providers.byok]
name = "my own byok"
base_url = "http://127.0.0.1:9999/v1"
env_key = "TOKEN_OF_BYOK"
"""
OPENCODE_FULL = """{
  "$schema": "https://opencode.ai/config.json",
  "model": "anthropic/claude-sonnet-4-5",
  "small_model": "anthropic/claude-haiku-4-5",
  "provider": {
    // through the gateway
    "anthropic": { "options": { "baseURL": "https://gw.example/v1" } }
  },
  "agent": {
    "reviewer": {
      "model": "anthropic/claude-opus-4-5",
      "tools": { "write": false, },
    },
  },
}
"""
AIDER_FULL = """##########################################################
# Sample .aider.conf.yml
##########################################################
## Specify the model to use for the main chat
model: sonnet   # alias
#openai-api-key: xxx
weak-model: 'haiku'
read:
  - CONVENTIONS.md
  - docs/style.md   # long: 3,000 words

commit-prompt: |
  Write one line.
  model: is not a key here

lint-cmd: [ "python: ruff check", 'js: eslint' ]
dark-mode: yes
"""
CONTINUE_FULL = """name: My Config
version: 0.0.1
schema: v1

# models: the order counts
models:
  # local first
  - name: Qwen
    provider: ollama
    model: qwen2.5-coder:14b
    roles:
      - chat
      - edit
    defaultCompletionOptions: { contextLength: 32768 }
  - name: GPT
    provider: openai
    model: gpt-5
    apiKey: ${{ secrets.OPENAI_API_KEY }}   # from .env

context:
  - provider: code
  - provider: docs
"""
CONTINUE_FLUSH = """name: Local Assistant
version: 1.0.0
schema: v1
models:
- name: Claude
  provider: anthropic
  chatOptions:
    baseSystemMessage: >-
      You are
      brief.
"""
SAMPLES = (
    FileSample("no file", VSCODE, None),
    sample("empty", VSCODE, ""),
    sample("blank lines", VSCODE, "\n\n"),
    sample("braces", VSCODE, "{}"),
    sample("braces and newline", VSCODE, "{\n}\n"),
    sample("only comments", VSCODE, "// nothing here yet\n/* really */"),
    sample("comments in braces", VSCODE, "{\n\t// nothing yet\n}\n"),
    sample("one line", VSCODE, '{"editor.fontSize": 12, "a": {"b": [1,2]}}'),
    sample("one line with a last comma", VSCODE, '{ "editor.fontSize": 12, }\n'),
    sample("plain", VSCODE, PLAIN),
    sample("plain without a last newline", VSCODE, PLAIN.rstrip()),
    sample("Windows", VSCODE, crlf(PLAIN)),
    FileSample("Windows with a BOM", VSCODE, BOM + crlf(COMMENTS).encode()),
    sample("mixed line ends", VSCODE, PLAIN.replace(",\n", ",\r\n", 2)),
    sample("comments everywhere", VSCODE, COMMENTS),
    sample("tabs and overrides", VSCODE, NESTED),
    sample("strange texts", VSCODE, STRANGE),
    sample("the official service", VSCODE, AUGMENT),
    sample("an object of advanced settings", VSCODE, OBJECT),
    sample("both forms", VSCODE, BOTH),
    sample("brace behind the last value", VSCODE, '{ "a": 1,\n  "b": 2 /* two */ }\n'),
    sample("Insiders", ClientKind.VSCODE_INSIDERS, NESTED + "\n"),
    sample("VSCodium", ClientKind.VSCODIUM, crlf(NESTED)),
    sample("Cursor", ClientKind.CURSOR, OBJECT.replace("  ", "\t")),
    FileSample("no Codex file", CODEX, None),
    sample("Codex", CODEX, TOML),
    sample("Codex on Windows", CODEX, crlf(TOML)),
    sample("Codex with providers", CODEX, PROVIDERS),
    sample("Codex with prose", CODEX, PROSE),
    sample("Codex with a byok of its own", CODEX, OWN_PROVIDER),
    FileSample("no opencode file", OPENCODE, None),
    sample("opencode", OPENCODE, OPENCODE_FULL),
    FileSample("opencode with a BOM", OPENCODE, BOM + b'{"theme": "system"}'),
    FileSample("no aider file", AIDER, None),
    sample("aider", AIDER, AIDER_FULL),
    sample("aider on Windows", AIDER, crlf(AIDER_FULL)),
    sample(
        "aider with a key", AIDER, "openai-api-key: sk-mine # ~\nopenai-api-base:\n"
    ),
    FileSample("no Continue file", CONTINUE, None),
    sample("Continue", CONTINUE, CONTINUE_FULL),
    sample("Continue, flush and folded", CONTINUE, CONTINUE_FLUSH),
    sample("Continue without models", CONTINUE, "name: a\nversion: 1\nmodels: []\n"),
    sample("Continue with null", CONTINUE, "name: a\nmodels: # none\nrules: [x]"),
)

TEXTS = {
    "empty": "",
    "one comment without an end": "# only this",
    "the example": example(),
    "the example with its own settings": example().replace(
        "#[chat]\n", "[chat]\ntemperature = 0.3  # mine\n"
    ),
    "comments everywhere": """# My settings, with care.

[server]   # where
port = 9000  # mine

  # indented, about the next table
[chat]
temperature   =    0.5
# between two keys
'system_prompt' = '''no "escape" \\ here'''   # literal

# about the next table
[tools]

# at the end
""",
    "dotted keys": """chat.temperature = 1 # a
routing.models.commit = "byok:a:b"

# of caps
caps . usd_per_day = 5
""",
    "inline tables": """upstreams = { a = { base_url = "https://a.example/v1" } } # all
chat = {temperature = 1, max_tokens=5}
""",
    "tables in any order": """[routing.models]
commit = "byok:a:b"
[upstreams.a]
base_url = "https://a.example/v1"
# of b
[upstreams.b]
base_url = "https://b.example/v1"
[routing]
default = "byok:a:c"
[upstreams.a.facts."x/y"]
window = 1000
""",
    "long values": '''[routing.fallback]
chat = [
  "byok:a:b", # first
  # then
  "byok:a:c",
]
[chat]
system_prompt = """
Be brief. # no comment
[no] = "table"
\\"""quoted\\"""
"""
''',
    "no last line end": "[chat]\ntemperature = 1",
    "CRLF": "# a\r\n[chat]\r\ntemperature = 1 # b\r\n\r\n# c\r\n[tools]\r\n",
    "both line ends": "# a\r\n[chat]\ntemperature = 1 # b\r\n# c\n",
    "list of tables": "[[upstreams.a.x]]\ny = 1\n[chat]\n",
    "hostile": '[chat]\nsystem_prompt = "\\u202e\\u0000<b>"\n["<img>"]\n"a\\nb" = 1\n',
}


def lay_vscode(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the settings file of a VS Code that has run here: its folder is made."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setattr("sys.platform", "linux")
    file = home / "Code" / "User" / "settings.json"
    file.parent.mkdir(parents=True)
    return file
