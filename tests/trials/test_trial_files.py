"""A repository in memory: no path leads out, and everything has a limit."""

import pytest

from byok.trials.trial_files import LARGEST_FILE, ROOT, ToolFailed, TrialFiles


@pytest.fixture
def workspace() -> TrialFiles:
    return TrialFiles({"a.py": "a = 1\n", "lib/b.py": "b = 1\n"})


@pytest.mark.parametrize(
    "path",
    [
        *("lib/b.py", "./lib/b.py", "lib//b.py", "lib/../lib/b.py", " lib/b.py "),
        *("x/../lib/b.py", f"{ROOT}/lib/b.py", "../project/lib/b.py"),
    ],
)
def test_a_path_is_found_however_it_is_written(
    workspace: TrialFiles, path: str
) -> None:
    assert workspace.read(path) == "b = 1\n"


@pytest.mark.parametrize(
    "path",
    [
        *("../../etc/passwd", "/etc/passwd", "lib/../../../etc/passwd", "//etc/passwd"),
        *("a\0.py", "a.py\0", "a\x1b[2J", "a\n", "p" * 301, "~/.ssh/id_rsa", "C:\\x"),
        *(f"{ROOT}/../secret", f"{ROOT}x/a.py", "..", "/", "", ".", "lib", "a.py/x"),
        "/proc/self/environ",
    ],
    ids=repr,
)
def test_no_other_path_is_read_or_leads_out(workspace: TrialFiles, path: str) -> None:
    with pytest.raises(ToolFailed):
        workspace.read(path)


@pytest.mark.parametrize(
    "path", ["../x.py", "/tmp/x.py", "lib", "", "a.py/x.py", "x\0", "p" * 301], ids=repr
)
def test_no_other_path_is_written(workspace: TrialFiles, path: str) -> None:
    before = workspace.files
    with pytest.raises(ToolFailed):
        workspace.write(path, "x")
    assert (workspace.files, workspace.revision) == (before, 0)


def test_a_file_of_ten_megabytes_and_a_thousand_files_are_refused(
    workspace: TrialFiles,
) -> None:
    with pytest.raises(ToolFailed, match="characters"):
        workspace.write("big.py", "x" * 10_000_000)
    workspace.write("full.py", "x" * LARGEST_FILE)
    with pytest.raises(ToolFailed, match="too many"):
        for number in range(1000):
            workspace.write(f"{number}.py", "")
    assert len(workspace.files) == 50
    workspace.write("a.py", "still")


def test_a_change_is_counted_and_reaches_no_copy(workspace: TrialFiles) -> None:
    before = workspace.files
    workspace.write(f"{ROOT}/new/c.py", "c = 1\n")
    assert workspace.revision == 1
    assert workspace.files == {**before, "new/c.py": "c = 1\n"}
    assert "new/c.py" not in before


def test_a_folder_is_listed_with_all_that_is_below_it(workspace: TrialFiles) -> None:
    assert workspace.list_folder(".") == ["a.py", "lib/b.py"]
    assert workspace.list_folder("lib/") == ["lib/b.py"]
    for path in ("li", "a.py", ".."):
        with pytest.raises(ToolFailed):
            workspace.list_folder(path)
