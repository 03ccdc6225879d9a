"""Lack of memory is known in each of its forms, and never called something else."""

import subprocess
import sys

import pytest

from byok.core.errors import ConfigError, NotReady
from byok.core.platform.process import explain_import, lacks_memory, speaks_of_memory
from tests.fakes.patience import START

_MAP = "libopenblas.so.0: failed to map segment from shared object"


def test_each_form_of_lacking_memory_is_known() -> None:
    short = [
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError(_MAP),
    ]
    other = [
        OSError(2, "No such file or directory"),
        RuntimeError("the event loop is closed"),
        ModuleNotFoundError("No module named 'numpy'"),
        ValueError("MemoryError"),
    ]
    assert [lacks_memory(error) for error in short] == [True] * 4
    assert [lacks_memory(error) for error in other] == [False] * 4


def test_the_last_words_of_libraries_without_memory_are_known() -> None:
    short = [
        "memory allocation of 1048576 bytes failed",
        "System error.'Failed to spawn segment merging thread'",
        "tree-sitter failed to allocate 4096 bytes",
        "An IO error occurred: 'Resource temporarily unavailable (os error 11)'",
    ]
    assert [text for text in short if not speaks_of_memory(text)] == []
    assert not speaks_of_memory("index out of bounds: the length is 3 (os error 113)")


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ModuleNotFoundError("No module named 'numpy'"), ConfigError, "config"),
        (ImportError(_MAP, name="numpy"), NotReady, "no_memory"),
    ],
)
def test_a_package_without_room_is_not_called_missing(
    error: ImportError, kind: type, code: str
) -> None:
    told = explain_import(error, "Embeddings need numpy.", "Install it.")
    assert isinstance(told, kind)
    assert told.code == code


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is counted")
def test_room_is_what_the_limit_leaves() -> None:
    lines = (
        "import resource",
        "from byok.core.platform.process import has_room",
        "assert has_room(10**6)",  # nothing limits it
        "resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))",
        "print(has_room(100), has_room(1024))",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=START,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True False\n", "")
