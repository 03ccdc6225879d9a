"""Examples of every command, shown at the end of its page of --help.

A command without a line is its own example.
"""

_MAX_LINES = 2
_LINES = """
byok init
byok init --upstream openrouter --yes
byok connect vscode --write
byok connect codex --model qwen3-coder:30b --write
byok disconnect vscode
byok keys set openrouter
byok keys list
byok keys set openrouter --store key-file
byok keys test openrouter
byok keys remove openrouter --store vault
byok config show routing
byok config path
byok config check
byok config check --config ./other.toml
byok config show server.port
byok token show
byok token rotate
byok token show --metrics
byok service install
byok service install --dry-run
byok service status --json
byok service logs -f
byok upgrade
byok upgrade --extra otel
byok uninstall --dry-run
byok uninstall --keep-keys --keep-settings
byok demo
byok demo --link
byok serve --upstream ollama --model qwen3-coder:30b
byok serve --upstream http://127.0.0.1:9000/v1 --workspace ./project
byok status
byok status --json
byok dashboard
byok dashboard --link
byok log -n 50 --errors
byok log -f
byok usage --by model --days 7
byok usage --csv
byok memory list -n 5
byok memory forget --days 30
byok models --upstream openrouter
byok models why
byok models update
byok models update --file ./api.json
byok probe ollama/qwen3-coder:30b
byok probe openrouter --show
byok prompts edit agent
byok prompts diff
byok prompts show agent --all-tools
byok prompts show agent.small --source
byok prompts diff agent
byok index add ./project
byok index --estimate ./project
byok index remove ./project
byok index why ./project/.env
byok index estimate ./project
byok search where are tokens checked
byok search --all --json --limit 5 retry policy
byok mcp
byok mcp -w ./project
byok embed estimate
byok embed enable
byok remote enable
byok remote disable
byok doctor
byok doctor --bundle ./byok.zip
byok explain
byok explain key_missing
byok capture on --for 10m
byok capture list
byok capture show 20260101 --full
byok report 20260101 --out ./report.zip
"""


def examples_of(words: str) -> list[str]:
    """Return the first examples of a command, such as `keys set`, or of its group."""
    prefix = f"byok {words} "
    lines = [line for line in _LINES.split("\n") if f"{line} ".startswith(prefix)]
    return lines[:_MAX_LINES] or [prefix.rstrip()]
