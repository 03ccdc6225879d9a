"""byok init: let the daemon run with the new settings."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from byok.cli.ask import ask_daemon, refuse_if_silent
from byok.cli.asker import Asker
from byok.cli.output import say, tell
from byok.errors import ByokError
from byok.platform.paths import Paths
from byok.routing import Service

if TYPE_CHECKING:
    from byok.daemon.instance import Instance

_SERVICE = "Keep byok running, from login on, as a service of your user?"
_START = "Start byok now, in the background?"


def run_daemon(
    paths: Paths,
    port: int,
    upstream: str,
    asker: Asker,
    *,
    can_install: Callable[[Paths], bool],
) -> "Instance | None":
    """Return the running daemon; start it, or install it as a service, if wanted.

    Raises:
        ByokError: it does not start, or refuses the settings.
    """
    from byok.cli.ensure_service import END_IT, start_in_background, start_service
    from byok.daemon_client.find import find_daemon

    daemon = find_daemon(paths)
    if daemon is None:
        refuse_if_silent(paths)
    if daemon := daemon or start_service(paths):
        _apply(upstream)
        return daemon
    if asker.is_person and can_install(paths) and asker.confirm(_SERVICE):
        from byok.cli.service import install

        install()
        return find_daemon(paths)
    if (asker.is_person or asker.takes_best) and asker.confirm(_START):
        daemon = start_in_background(paths, port)
        say(f"byok is listening on http://127.0.0.1:{daemon.port}. {END_IT}")
        return daemon
    say("Start it when you like: byok serve, or byok service install")
    return None


def can_install_service(paths: Paths) -> bool:
    """Tell whether this system keeps programs of the user running."""
    from byok.service.control import UserService

    try:
        service = UserService.of_this_machine(paths)
        service.check_system()
        return not service.is_for_others()
    except ByokError:  # it is offered only where it surely works
        return False


def _apply(upstream: str) -> None:
    """Let the running daemon read the settings now, and say if it cannot use them."""
    ask_daemon(Service.RELOAD)
    answer = ask_daemon(Service.DAEMON) or {}
    model = str(answer.get("model", ""))
    say(f"byok runs, and uses {model}.")
    if answer.get("upstream") != upstream and not model.startswith(f"byok:{upstream}:"):
        tell(f"It does not use {upstream} by itself: {answer.get('reason')}.")
