"""Install, remove and control the service with the commands of its system."""

from dataclasses import dataclass, replace
from typing import Self

from byok.errors import CannotStart, ConfigError, NotReady
from byok.platform.paths import Paths, make_private
from byok.service.base import Launch, ServiceFile, ServiceState, ServiceSystem, mark_of
from byok.service.choose import choose_system
from byok.service.files import read_mark, remove_files, write_files
from byok.service.runner import Run, run, run_all

_CODE = "service"


@dataclass(frozen=True, slots=True)
class UserService:
    """byok as a service of this user: `paths` are of the daemon that it starts."""

    system: ServiceSystem
    paths: Paths
    run: Run = run

    @classmethod
    def of_this_machine(cls, paths: Paths) -> Self:
        """Return the service of this operating system.

        Raises:
            CannotStart: byok knows none.
        """
        return cls(choose_system(paths), paths)

    def is_installed(self) -> bool:
        """Tell whether a service starts a daemon of these paths.

        Raises:
            ConfigError: a file of its name is not byok's.
        """
        mark = mark_of(self.paths.state_dir)
        marks = [read_mark(path) for path in self.system.paths]  # all are looked at
        return set(marks) == {mark}

    def is_for_others(self) -> bool:
        """Tell whether byok installed a service that uses other folders.

        Raises:
            ConfigError: a file of its name is not byok's.
        """
        marks = {read_mark(path) for path in self.system.paths}
        return bool(marks - {"", mark_of(self.paths.state_dir)})

    def check_owner(self) -> None:
        """Refuse to touch a service that uses other folders.

        Raises:
            ConfigError: it does, or a file of its name is not byok's.
        """
        if self.is_for_others():
            raise ConfigError(
                "A service of byok with other folders is installed.",
                hint="Remove it with the BYOK_HOME of then: byok service uninstall",
            )

    def check_system(self) -> None:
        """Check that the service manager runs.

        Raises:
            CannotStart: it does not; the hint says what to do.
        """
        if self.system.check is None:
            return
        try:
            self.run(self.system.check)
        except CannotStart as error:
            raise CannotStart(
                f"{self.system.title} does not run here, or not for you.",
                code=_CODE,
                hint=self.system.cure,
            ) from error

    def fit(self, launch: Launch) -> Launch:
        """Return what the system supports of this."""
        if self.system.probe is None:
            return launch
        try:
            self.run(self.system.probe)
        except CannotStart:
            return replace(launch, sandbox=False)
        return launch

    def install(self, files: list[ServiceFile], launch: Launch) -> None:
        """Write the files, and let the system start the service now and at login.

        Raises:
            ConfigError: a file of such a name is not byok's.
            CannotStart: the system did not do its part.
        """
        self._check_name()
        for folder in launch.folders:
            make_private(folder)
        write_files(files)
        run_all(self.system.install, self.run)

    def uninstall(self) -> list[str]:
        """Stop the service and remove its files; return their names.

        Raises:
            ConfigError: a file of such a name is not byok's, or the service uses other
                folders; nothing is removed.
            CannotStart: the system did not do its part.
        """
        if not any([read_mark(path) for path in self.system.paths]):
            return []
        self.check_owner()
        run_all(self.system.remove, self.run)
        gone = remove_files(self.system.paths)
        run_all(self.system.forget, self.run)
        return [str(path) for path in gone]

    def start(self) -> None:
        """Start the service; nothing happens if it runs.

        Raises:
            NotReady: it is not installed.
            CannotStart: the system did not do its part.
        """
        self._check_installed()
        run_all(self.system.start, self.run)

    def stop(self) -> None:
        """Stop the service until the next login or `start`.

        Raises:
            NotReady: it is not installed.
            CannotStart: the system did not do its part.
        """
        self._check_installed()
        run_all(self.system.stop, self.run)

    def restart(self) -> None:
        """Stop the service and start it.

        Raises:
            NotReady: it is not installed.
            CannotStart: the system did not do its part.
        """
        self._check_installed()
        run_all(self.system.restart, self.run)

    def state(self) -> ServiceState:
        """Ask the system for the state of the service.

        Raises:
            CannotStart: it does not answer.
        """
        return self.system.read_state(run_all(self.system.query, self.run))

    def _check_name(self) -> None:
        taken = self.system.taken
        if taken is None or any([read_mark(path) for path in self.system.paths]):
            return
        if self.run(replace(taken, may_fail=True)).exit_code == 0:
            raise ConfigError(
                f"{self.system.title} has another service with the name byok; it was "
                "not changed.",
                hint="Remove or rename it, then try again.",
            )

    def _check_installed(self) -> None:
        if not self.is_installed():
            raise NotReady(
                "byok is not installed as a service.",
                code=_CODE,
                hint="Run: byok service install",
            )
