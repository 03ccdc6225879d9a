"""The golden prompts are written to a folder, and only what changed."""

from pathlib import Path

import pytest

from tests.fakes.occasions import OCCASIONS
from tools.write_golden_prompts import main


def test_each_occasion_has_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new"
    assert main(["--folder", str(folder)]) == 0
    names = {path.stem for path in folder.iterdir()}
    assert names == {occasion.name for occasion in OCCASIONS}
    assert f"{len(OCCASIONS)} changed" in capsys.readouterr().out

    (folder / "editor-chat.txt").write_text("other", "utf-8")
    (folder / "of-no-occasion.txt").write_text("x", "utf-8")
    (folder / "notes.md").write_text("x", "utf-8")
    main(["--folder", str(folder)])
    assert "1 changed, 1 removed\n  editor-chat.txt" in capsys.readouterr().out
    assert "notes.md" in {path.name for path in folder.iterdir()}

    main(["--folder", str(folder)])
    assert "0 changed, 0 removed" in capsys.readouterr().out
