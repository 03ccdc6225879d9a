"""What the shell offers where a value is typed."""

import json
from pathlib import Path

import pytest

from byok.core.platform.paths import find_paths
from tests.fakes.commands import Cli
from tests.fakes.daemon import write_settings

SETTINGS = """
[upstreams.box]
base_url = "http://127.0.0.1:9/v1"
models = ["coder:30b", "coder:8b"]
key_names = ["work"]
[routing.aliases]
fast = "byok:box:coder:8b"
"""

# Zsh runs the first two when it shows them, bash the third when the line is entered.
ODD = ("\\$(id)", "\\`id`", "1;id", "\nid", "(id)", "it's", "a b", "a*b")


@pytest.fixture
def offered(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> "Offer":
    paths = find_paths()
    write_settings(SETTINGS)
    monkeypatch.setenv("BYOK_UPSTREAMS__CLOUDBOX__BASE_URL", "https://h/v1")
    paths.state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    listed = ["llama:1b", {"id": "coder:1b"}, "模型"]
    listed += [f"llama:{name}" for name in ODD]
    paths.models.write_text(json.dumps({"ollama@http://x": listed}))
    return Offer(cli, monkeypatch)


class Offer:
    """Completes the last of the words that are typed, as bash asks for it."""

    def __init__(self, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cli = cli
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str) -> list[str]:
        self._monkeypatch.setenv("_BYOK_COMPLETE", "complete_bash")
        self._monkeypatch.setenv("COMP_WORDS", "\n".join(["byok", *words]))
        self._monkeypatch.setenv("COMP_CWORD", str(len(words)))
        done = self._cli()
        assert done.err == ""
        return done.out.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("serve --upstream olla", "ollama ollama_cloud"),
        ("init --upstream bo", "box"),
        ("init --upstream clou", "cloudbox"),
        ("models --upstream = az", "azure"),
        ("probe bo", "box"),
        ("probe box", "box box/coder:30b box/coder:8b"),
        ("probe ollama/模", "ollama/模型"),
        ("keys set box", "box box/work"),
        ("keys test off", "official"),
        ("serve --model fa", "fast"),
        ("serve --model co", "coder:30b coder:8b coder:1b"),
        ("connect codex --model = co", "coder:30b coder:8b coder:1b"),
        # bash cuts words at colons, and replaces what is behind the last one
        ("serve --model coder : 3", "30b"),
        ("probe ollama/coder :", "1b"),
        ("serve --model byok : box : coder : 8", "8b"),
        ("config show routing.def", "routing.default"),
        ("config show caps.tokens_per_d", "caps.tokens_per_day"),
        ("config show upstreams.box.mo", "upstreams.box.models upstreams.box.model"),
        ("explain key_mis", "key_missing"),
        ("connect vsc", "vscode vscode-insiders vscodium"),
        ("prompts edit agent.sm", "agent.small"),
        ("upgrade --extra ot", "otel"),
        ("keys set box --st", "--store"),
        ("keys set box --store key-", "key-file"),
        ("keys rem", "remove"),
        ("search 'where", ""),
    ],
)
def test_completion_of_values(offered: Offer, words: str, found: str) -> None:
    assert offered(*words.split()) == found.split()


@pytest.mark.case("B170")
def test_completion_offers_no_name_that_a_shell_would_evaluate(offered: Offer) -> None:
    assert offered("serve", "--model", "llama") == ["llama:1b"]


@pytest.mark.parametrize("command", ["index remove", "search -w", "serve --workspace"])
def test_completion_of_folders_offers_what_is_indexed(
    offered: Offer, cli: Cli, tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    cli("index", "add", folder)
    assert offered(*command.split(), str(tmp_path)) == [str(folder)]
    assert offered(*command.split(), "./") == []  # the shell's own are better


def test_completion_says_nothing_where_byok_cannot_be_used(
    offered: Offer, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_paths().config.write_text("[upstreams.box")
    assert offered("serve", "--upstream", "ollama_") == ["ollama_cloud"]
    monkeypatch.setenv("BYOK_HOME", "not/absolute")
    assert offered("serve", "--upstream", "olla") == []
    assert offered("no-such-command", "x") == []


def test_a_single_setting_is_shown_and_an_unknown_one_is_guessed(
    offered: Offer, cli: Cli
) -> None:
    assert json.loads(cli("config", "show", "upstreams.box.models").out) == [
        "coder:30b",
        "coder:8b",
    ]
    assert cli("config", "show", "prompts.chat").out == "null\n"
    done = cli("config", "show", "server.prot")
    assert (done.code, done.out) == (78, "")
    assert "server.port" in done.err
