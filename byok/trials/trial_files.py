"""The repository of a task, in memory: nothing that a model does reaches the disk.

There are no links and no other files, so a path that leads out leads nowhere; it is an
error for the model all the same, as it is in a client.
"""

import posixpath
from collections.abc import Mapping

ROOT = "/workspace/project"
"""Where the model is told that the repository is."""
LARGEST_FILE = 64 * 1024  # characters
_MOST_FILES, _LONGEST_PATH = 50, 300


class ToolFailed(ValueError):
    """A tool cannot do what it was called for; the message is for the model."""


class BadArguments(ToolFailed):
    """The arguments of a call lack something, or have another type."""


class TrialFiles:
    """The files of a repository by path; `revision` counts the changes."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self.revision = 0

    @property
    def files(self) -> Mapping[str, str]:
        """The texts of the files by their paths."""
        return dict(self._files)

    def resolve(self, path: str) -> str:
        """Return a path relative to the repository, "" for the repository itself.

        Raises:
            ToolFailed: it leads out of the repository, or can be no path.
        """
        if len(path) > _LONGEST_PATH or not path.isprintable():
            raise ToolFailed("This is no path of a file.")
        clean = posixpath.normpath(posixpath.join(ROOT, path.strip()))
        if clean == ROOT:
            return ""
        if not clean.startswith(f"{ROOT}/"):
            raise ToolFailed(f"{path} is outside of the workspace.")
        return clean.removeprefix(f"{ROOT}/")

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            ToolFailed: there is no such file.
        """
        name = self.resolve(path)
        if name in self._files:
            return self._files[name]
        if self.is_folder(path):
            raise ToolFailed(f"{path} is a directory.")
        raise ToolFailed(f"There is no file {path} in the workspace.")

    def write(self, path: str, text: str) -> None:
        """Write a file.

        Raises:
            ToolFailed: there may be no such file, it is too large, or one too many.
        """
        name = self.resolve(path)
        if not name or self.is_folder(path):
            raise ToolFailed(f"{path} is a directory.")
        if any(name.startswith(f"{file}/") for file in self._files):
            raise ToolFailed(f"{path} is below a file.")
        if len(text) > LARGEST_FILE:
            raise ToolFailed(f"{path} would have more than {LARGEST_FILE} characters.")
        if name not in self._files and len(self._files) >= _MOST_FILES:
            raise ToolFailed("There are too many files in the workspace.")
        self._files[name] = text
        self.revision += 1

    def has_file(self, path: str) -> bool:
        """Tell whether there is a file of this path."""
        return self.resolve(path) in self._files

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is that of a folder with files."""
        name = self.resolve(path)
        return not name or any(file.startswith(f"{name}/") for file in self._files)

    def list_folder(self, path: str) -> list[str]:
        """Return the paths of all files in a folder and below it.

        Raises:
            ToolFailed: there is no such folder.
        """
        name = self.resolve(path)
        if not self.is_folder(path):
            raise ToolFailed(f"There is no directory {path} in the workspace.")
        inside = f"{name}/" if name else ""
        return sorted(file for file in self._files if file.startswith(inside))
