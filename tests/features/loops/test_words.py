"""The sentences about a loop."""

import pytest

from byok.features.loops.watch import AnsweredCall, Loop, LoopKind

CALL = AnsweredCall("edit", '{"path": "a.py"}', "No such text.\nMore.", is_error=True)


@pytest.mark.parametrize("kind", LoopKind)
@pytest.mark.parametrize("ends", [False, True])
def test_sentences_are_one_line_and_say_how_often(kind: LoopKind, ends: bool) -> None:
    loop = Loop(kind, 7, CALL, ends)
    assert loop.fact == f"{'ended' if ends else 'warned'}-{kind}-7"
    assert loop.for_model.startswith("\n\n[Note from byok: ")
    assert "\n" not in loop.for_model.strip()
    assert "7" in loop.for_model
    assert "7" in loop.for_user
    assert "[loops]" in loop.for_user


def test_the_model_is_told_the_call_and_the_failure_and_the_user_only_the_tool() -> (
    None
):
    loop = Loop(LoopKind.FAILING, 3, CALL, ends=True)
    assert 'edit with {"path": "a.py"} has failed 3 times' in loop.for_model
    assert 'last with "No such text. More."' in loop.for_model
    assert "edit failed 3 times" in loop.for_user
    assert "a.py" not in loop.for_user
    assert "No such" not in loop.for_user
