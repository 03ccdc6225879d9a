"""All checks, in the order of the report: a row for each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from byok.doctor import (
    addresses,
    clients,
    code_index,
    configuration,
    daemon,
    files,
    keys,
    machine,
    models,
    own_databases,
    ports,
    program,
    questions,
    services,
    upstreams,
    user_service,
)
from byok.doctor.results import CheckResult
from byok.doctor.surroundings import Surroundings


async def _one(around: Surroundings) -> Sequence[str]:
    """Return that a check is about nothing in particular."""
    del around
    return ("",)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, what it runs, and how many seconds that may take.

    It runs once for each of its subjects, such as an upstream or a folder.
    """

    name: str
    run: Callable[[Surroundings, str], Awaitable[CheckResult]]
    subjects: Callable[[Surroundings], Awaitable[Sequence[str]]] = _one
    seconds: float = 15.0


_UPSTREAM = upstreams.upstream_names
_ASKED = 2 * questions.QUESTION_SECONDS

CHECKS = (
    Check("versions", program.check_versions),
    Check("settings", configuration.check_settings_file),
    Check("own prompts", configuration.check_own_prompts),
    Check("settings in force", configuration.check_settings_in_force),
    Check("daemon", daemon.check_daemon),
    Check("daemon version", daemon.check_daemon_version),
    Check("service", user_service.check_service, seconds=30.0),
    Check("port", ports.check_port),
    Check("localhost", ports.check_localhost),
    Check("proxy variables", configuration.check_proxies),
    Check("token", files.check_token),
    Check("other token", files.check_other_token, files.other_tokens),
    Check("folder", files.check_folder, files.folders),
    Check("disk", files.check_disk),
    Check("temporary folder", files.check_temporary_folder),
    Check("clock", machine.check_clock, seconds=30.0),
    Check("upstreams", upstreams.check_choice),
    Check("address", addresses.check_address, _UPSTREAM),
    Check("TLS", upstreams.check_tls, upstreams.tls_upstreams, 20.0),
    Check("key", keys.check_key, keys.keys_looked_up),
    Check("keyring", keys.check_keyring),
    Check("model list", upstreams.check_models, _UPSTREAM, 30.0),
    Check("model", models.check_model, models.model_uses, 30.0),
    Check("context window", models.check_window, _UPSTREAM, 35.0),
    Check("chat", questions.check_chat, questions.asked_upstreams, _ASKED),
    Check("streaming", questions.check_streaming, questions.asked_upstreams, _ASKED),
    Check(
        "tool call", questions.check_tool_call, questions.asked_upstreams, 2 * _ASKED
    ),
    Check("official service", services.check_official, services.official_service),
    Check("vectors", services.check_vectors, services.vectors),
    Check("client", clients.check_client, clients.clients),
    Check("ripgrep", program.check_ripgrep),
    Check("parsers", program.check_parsers, seconds=40.0),
    Check("index", code_index.check_index, seconds=code_index.INDEX_SECONDS),
    Check(
        "database",
        own_databases.check_database,
        own_databases.own_databases,
    ),
    Check(
        "workspace",
        code_index.check_workspace,
        code_index.workspaces,
        code_index.INDEX_SECONDS,
    ),
    Check("watches", code_index.check_watches, seconds=code_index.INDEX_SECONDS),
)
