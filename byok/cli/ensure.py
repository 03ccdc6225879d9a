"""byok serve --ensure: compare the running daemon with the requested options."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from byok.cli.ask import ask_daemon, folders
from byok.routing import Service

if TYPE_CHECKING:
    from byok.chat import Json
    from byok.config import Settings
    from byok.daemon.instance import Instance


class RequestedOptions(NamedTuple):
    """The options of `byok serve`; an empty value means not given."""

    upstream: str = ""
    model: str = ""
    port: str = ""
    workspaces: tuple[Path, ...] = ()
    config: Path | None = None


def unfulfilled_options(
    daemon: "Instance", options: RequestedOptions, settings: "Settings"
) -> list[str]:
    """Return the options that the running daemon does not have, as typed."""
    if options == RequestedOptions():
        return []
    answer = ask_daemon(Service.DAEMON) or {}
    found = []
    if options.upstream and not _answers(answer, options.upstream, settings):
        found.append(f"--upstream {options.upstream}")
    if options.model and not _is_default(answer["model"], options.model):
        found.append(f"--model {options.model}")
    if options.port not in ("", "0", str(daemon.port)):
        found.append(f"--port {options.port}")
    if options.config and str(options.config.absolute()) != answer["settings"]["file"]:
        found.append(f"--config {options.config}")
    if options.workspaces:
        index = ask_daemon(Service.INDEX_STATUS) or {}
        known = {space["root"] for space in index["workspaces"]}
        found += [
            f"--workspace {given}"
            for given, real in zip(
                options.workspaces, folders(options.workspaces), strict=True
            )
            if str(real) not in known
        ]
    return found


def _answers(answer: "Json", upstream: str, settings: "Settings") -> bool:
    """Tell whether an upstream is the daemon's default."""
    from byok.config import upstream_named
    from byok.wiring.apis import base_url_of

    name, section = upstream_named(upstream, settings)
    return (name, base_url_of(section)) == (answer["upstream"], answer["base_url"])


def _is_default(default: str, model: str) -> bool:
    return model == default or default.endswith(f":{model}")
