"""byok embed: what it says, and that nothing leaves before it is confirmed."""

import json
import socket
import threading
from pathlib import Path
from typing import Any, Self

import pytest

from byok.cli.embed import describe_cost, describe_vectors
from byok.core.platform.paths import find_paths
from byok.search.outside.consent import Consent
from tests.fakes.commands import Cli
from tests.fakes.daemon import daemon_thread, write_settings
from tests.fakes.patience import PATIENCE
from tests.fakes.upstream import dead_url

REMOTE = """
[network]
proxy = "{proxy}"
[upstreams.vendor]
base_url = "https://vendor.example/v1"
[embeddings]
upstream = "vendor"
model = "embed-1"
price = 2.0
"""
PRESET = """
[network]
proxy = "{proxy}"
[embeddings]
upstream = "openai"
model = "text-embedding-3-small"
"""
STATUS: dict[str, Any] = {
    "state": "filling", "upstream": "vendor", "host": "vendor.example:443",
    "model": "embed-1", "is_local": False, "dimensions": 0, "chunks": 0, "embedded": 0,
    "refused": 0, "bytes": 0, "error": "", "note": "", "team": None,
}  # fmt: skip
COST: dict[str, Any] = {
    "host": "vendor.example:443", "model": "embed-1", "is_local": False,
    "chunks": 1200, "tokens": 180_000, "dollars": 0.36, "confirmed": False,
}  # fmt: skip


def test_status_line_has_the_figures_that_there_are() -> None:
    filled = {
        **STATUS, "chunks": 19_000, "embedded": 17_000, "refused": 3,
        "dimensions": 768, "bytes": 15_000_000,
    }  # fmt: skip
    assert describe_vectors(filled) == (
        "vectors: filling; model embed-1 at vendor.example:443, "
        "17,000 of 19,000 chunks, 3 refused, 768 dimensions, 15.0 MB"
    )


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "embed-1 on vendor.example:443 would get 1,200 chunks of your code, about "
             "180,000 tokens, for about $0.36;"),
        ({"dollars": 0.0012}, "for less than a cent"),
        ({"dollars": None}, "at a price that byok does not know"),
        
        ({"is_local": True, "dollars": 0.0}, "free of charge"),
        
        ({"chunks": 0}, "how much is unknown, as nothing is indexed yet"),
        
    ],
)  # fmt: skip
def test_cost_names_host_model_chunks_tokens_and_price(
    more: dict[str, Any], words: str
) -> None:
    assert words in describe_cost({**COST, **more})


@pytest.mark.case("B124")
def test_remote_model_is_enabled_by_the_user_only(cli: Cli, project: Path) -> None:
    write_settings(REMOTE.format(proxy=dead_url().removesuffix("/v1")))
    with daemon_thread():
        check_remote(cli, project)


def check_remote(cli: Cli, project: Path) -> None:
    assert cli("index", "add", project).code == 0
    consent = find_paths().embedding_consent
    assert "byok embed enable" in cli("embed", "status").out
    cost = json.loads(cli("embed", "estimate", "--json").out)
    assert (cost["host"], cost["model"]) == ("vendor.example:443", "embed-1")
    assert cost["chunks"] > 0
    assert not cost["confirmed"]
    assert not consent.exists()

    refused = cli("embed", "enable", stdin="y\n")
    assert refused.code == 1 or refused.code == 78
    assert "no terminal" in refused.err
    assert "vendor.example:443" in refused.out
    assert not consent.exists()

    enabled = cli("embed", "enable", "--yes")
    assert enabled.code == 0, enabled.err
    assert consent.stat().st_mode & 0o777 == 0o600
    assert json.loads(cli("embed", "estimate", "--json").out)["confirmed"]

    paused = cli("embed", "pause")
    assert "paused" in paused.out
    assert json.loads(cli("embed", "status", "--json").out)["state"] == "paused"
    assert "paused" not in cli("embed", "resume").out
    disabled = cli("embed", "disable")
    assert "not enabled" in disabled.out
    assert not json.loads(cli("embed", "estimate", "--json").out)["confirmed"]


class Proxy:
    """Counts who connects, and hangs up."""

    def __init__(self) -> None:
        self.connections = 0
        self.reached = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _count(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:  # it was shut down
                return
            self.connections += 1
            self.reached.set()


@pytest.mark.case("B124")
def test_before_the_consent_nobody_is_connected_to(cli: Cli, project: Path) -> None:
    with Proxy() as proxy:
        write_settings(PRESET.format(proxy=proxy.url))
        with daemon_thread(environ={"OPENAI_API_KEY": "sk-" + "k" * 40}):
            assert cli("index", "add", project).code == 0
            assert cli("search", "bake bread", "-w", project).code == 0
            for command in ("status", "estimate", "pause", "resume", "disable"):
                assert cli("embed", command).code == 0
            assert cli("embed", "enable").code != 0
            assert cli("search", "oven heat", "-w", project).code == 0
            assert proxy.connections == 0
            assert cli("embed", "enable", "--yes").code == 0
            assert proxy.reached.wait(PATIENCE)
            assert cli("embed", "disable").code == 0


HOST = "code.example:8443"


@pytest.fixture
def consent(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BYOK_SEARCH__REMOTE__URL", f"https://{HOST}")
    return find_paths().search_consent


def is_allowed(host: str = HOST) -> bool:
    consent = Consent(find_paths().search_consent)
    return consent.allows(host, "", is_local=False)


@pytest.mark.case("B129")
def test_a_search_server_is_enabled_by_the_user_only(cli: Cli, consent: Path) -> None:
    refused = cli("remote", "enable", stdin="y\n")
    assert refused.code
    assert HOST in refused.out
    assert not consent.exists()
    enabled = cli("remote", "enable", "--yes")
    assert (enabled.code, enabled.err) == (0, "")
    assert consent.stat().st_mode & 0o777 == 0o600
    assert is_allowed()
    assert not is_allowed("other.example:443")
    assert cli("remote", "disable").code == 0
    assert not is_allowed()


def test_a_server_must_be_named_first(cli: Cli) -> None:
    done = cli("remote", "enable", "--yes")
    assert done.code
    assert "[search.remote]" in done.err
    assert not find_paths().search_consent.exists()
