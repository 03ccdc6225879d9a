"""Refused parameters: named at any depth, then dropped, renamed or lowered."""

from typing import Any

import pytest

from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import (
    RefusedRequest,
    Remedy,
    RemedyTable,
    change_body,
    drop_parameter,
    drop_row,
    find_remedy,
    lower_row,
    rename_row,
    set_parameter,
)

BODY = {
    "seed": 7,
    "options": {"num_ctx": 4096, "num_predict": 900, "deep": {"er": True}},
    "alone": {"one": None},
    "a.b": 1,
}
TABLE: RemedyTable = {
    "lower": lower_row(["options.num_predict"]),
    "rename": rename_row({"seed": "options.seed", "options.seed": "seed"}),
    "drop": drop_row(["options.num_ctx", "options.deep.er", "seed", "alone.one"]),
}


def refused(
    body: Any, message: str, *known: Remedy, status: int = 400, extra: Any = ()
) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, status)
    return find_remedy(TABLE, RefusedRequest(body, error, tuple(extra), known))


@pytest.mark.parametrize(
    ("path", "gone"),
    [
        ("seed", {"seed"}),
        ("alone.one", {"alone"}),
        ("a.b", {"a.b"}),
        ("missing.one", set()),
        ("options.missing", set()),
    ],
)
def test_a_dropped_parameter_takes_an_empty_object_with_it(
    path: str, gone: set[str]
) -> None:
    assert BODY.keys() - drop_parameter(BODY, path).keys() == gone


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("Unknown option num_ctx", Remedy("drop", "options.num_ctx")),
        ("options.deep.er: not permitted", Remedy("drop", "options.deep.er")),
        ("seed is unknown", Remedy("rename", "seed")),
        (
            "num_predict must be at most 256 (of 8)",
            Remedy("lower", "options.num_predict", "256"),
        ),
        ("num_predict must be at least 1000", None),
        ("number of seeds", None),
    ],
)
def test_the_row_that_helps_is_found(message: str, remedy: Remedy | None) -> None:
    assert refused(BODY, message) == remedy


def test_fields_of_the_user_may_be_dropped_at_any_depth() -> None:
    assert refused(BODY, "no num_predict", extra=["options.num_predict"]) == Remedy(
        "drop", "options.num_predict"
    )


def test_a_name_is_changed_once() -> None:
    once = Remedy("rename", "seed")
    body, _ = change_body(TABLE, BODY, [once])
    assert body["options"]["seed"] == 7
    assert refused(body, "options.seed is unknown", once) is None
    both = set_parameter(BODY, "options.seed", 8)
    assert refused(both, "seed: unknown") == Remedy("drop", "seed")


def test_another_parameter_at_fault_comes_before_a_new_name() -> None:
    row = rename_row({"seed": "salt"}, unless=["alone"])
    error = refusal_of({"error": {"message": "neither alone nor seed"}}, 400)
    assert row.find(RefusedRequest(BODY, error)) is None


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("options.num_predict", ModelFacts("", max_output=256)),
        ("thinking.budget_tokens", ModelFacts("")),
    ],
)
def test_a_lowered_cap_teaches_the_longest_answer(what: str, facts: ModelFacts) -> None:
    assert TABLE["lower"].teaches(Remedy("lower", what, "256")) == facts
