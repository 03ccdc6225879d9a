"""The check of byok as a service: what is installed starts this byok, and runs."""

from dataclasses import replace

from byok.daemon.instance import Instance
from byok.doctor.background import in_background
from byok.doctor.results import CheckResult, doubtful, good, skip
from byok.doctor.surroundings import Surroundings
from byok.errors import CannotStart
from byok.service.base import ServiceState
from byok.service.choose import make_launch
from byok.service.control import UserService
from byok.service.files import read_file


async def check_service(around: Surroundings, about: str) -> CheckResult:
    """Check that the service, if there is one, runs this byok and starts at login."""
    del about
    try:
        service = UserService.of_this_machine(around.paths)
    except CannotStart as error:
        return skip(str(error))
    if not await in_background(service.is_installed):
        if await in_background(service.is_for_others):
            return skip("another byok of yours, with other folders, is a service")
        return good("byok is none; byok service install would keep it running")
    state = await in_background(service.state)
    is_other = await in_background(lambda: _runs_another(service))
    return judge_service(state, await around.running(), is_other=is_other)


def _runs_another(service: UserService) -> bool:
    """Tell whether no file of the service names the Python that runs this command.

    Each system writes its path in another way, so whole lines are compared: those that
    would be others with another Python.
    """
    launch = make_launch(service.paths, port=1)
    own, other = (
        {line for f in service.system.render(one) for line in f.content.splitlines()}
        for one in (launch, replace(launch, python="/"))
    )
    contents = [read_file(path) or "" for path in service.system.paths]
    installed = {line for content in contents for line in content.splitlines()}
    return installed.isdisjoint(own - other)


def judge_service(
    state: ServiceState, daemon: Instance | None, *, is_other: bool
) -> CheckResult:
    """Say what a state means, beside the daemon that runs."""
    if is_other:
        return doubtful(
            "it starts a byok of another Python than this one", "byok service install"
        )
    if not state.enabled:
        return doubtful("it does not start at login", "byok service install")
    if daemon and state.pid not in (0, daemon.pid):
        return doubtful(
            "it runs, and so does a daemon that was started by hand",
            "byok stop, then byok service start",
        )
    if daemon and not state.running:
        return doubtful(
            "the daemon that runs was started by hand",
            "byok stop, then byok service start",
        )
    if state.running or state.waits:
        return good("it runs" if state.running else "the first request starts it")
    return doubtful(
        f"it does not run: {state.detail}", "byok service start; byok service logs"
    )
