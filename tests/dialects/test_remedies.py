"""The table of remedies: which row counts, what is told, and to whom."""

from typing import Any

import pytest
from msgspec.structs import replace

from byok.core.chat import ChatRequest
from byok.dialects.error_bodies import refusal_of
from byok.dialects.model_facts import ModelFacts
from byok.dialects.remedies import (
    CHAT_REFUSED,
    RESPONSES_REFUSED,
    RefusedRequest,
    Remedy,
    RemedyRow,
    RemedyTable,
    change_body,
    drop_parameter,
    drop_row,
    effort_row,
    find_remedy,
    lower_row,
    missing_path_row,
    rename_row,
    rewrite_chat,
    set_parameter,
    switch_row,
)

BODY = {"words": "a b c"}


def without_word(body: Any, remedy: Remedy) -> dict[str, Any]:
    kept = [word for word in body["words"].split() if word != remedy.what]
    return {**body, "words": " ".join(kept)}


def named_word(refused: RefusedRequest) -> tuple[str, str] | None:
    found = [w for w in refused.body["words"].split() if f"'{w}'" in refused.text]
    return (found[0], "") if found else None


ROW = RemedyRow(named_word, without_word, "Left out: {what}.")

TABLE = {"first": ROW, "second": ROW}


def refused(message: str, *known: Remedy, **fields: Any) -> RefusedRequest:
    error = refusal_of({"error": {"message": message}}, 400)
    return RefusedRequest(BODY, error, known=known, **fields)


def test_a_remedy_that_was_made_is_found_no_more() -> None:
    made = Remedy("first", "b")
    assert find_remedy(TABLE, refused("no 'b'", made)) == Remedy("second", "b")
    assert find_remedy({"first": ROW}, refused("no 'b'", made)) is None
    assert find_remedy(TABLE, refused("no 'z'")) is None


def test_new_remedies_are_told_in_one_sentence() -> None:
    remedies = [Remedy("first", "a"), Remedy("second", "c")]
    _, told = change_body(TABLE, BODY, remedies, new=remedies)
    assert told == ("Left out: a, c.",)
    _, told = change_body(TABLE, BODY, remedies, new=remedies[1:])
    assert told == ("Left out: c.",)


@pytest.mark.parametrize(("agent", "told"), [(True, 1), (False, 0)])
def test_a_remedy_for_agents_is_told_to_them_alone(agent: bool, told: int) -> None:
    row = RemedyRow(named_word, without_word, "No {what}.", is_for_agents=True)
    remedies = [Remedy("x", "a")]
    chat = ChatRequest((), agent=agent)
    _, notices = change_body({"x": row}, BODY, remedies, new=remedies, chat=chat)
    assert len(notices) == told


def test_a_known_remedy_is_told_where_it_matters() -> None:
    row = RemedyRow(named_word, without_word, "No.", lambda chat: chat.silent)
    known = [Remedy("x", "a")]
    silent = ChatRequest((), silent=True)
    assert change_body({"x": row}, BODY, known, chat=silent)[1] == ("No.",)
    assert change_body({"x": row}, BODY, known)[1] == ()


def test_a_remedy_that_would_not_change_the_conversation_is_none() -> None:
    row = RemedyRow(
        named_word, rewrite=lambda chat, remedy: replace(chat, question=remedy.what)
    )
    table = {"same": row, "other": ROW}
    asked = ChatRequest((), question="b")
    assert find_remedy(table, refused("no 'a'", chat=asked)) == Remedy("same", "a")
    assert find_remedy(table, refused("no 'b'", chat=asked)) == Remedy("other", "b")
    assert rewrite_chat(table, asked, [Remedy("same", "a"), Remedy("other", "b")]) == (
        replace(asked, question="a"),
        (),
    )


# The nearest effort after a refusal that names the accepted ones
ROWS = {"effort": effort_row("reasoning.effort")}

OPENAI = (
    "Unsupported value: 'reasoning.effort' does not support 'minimal' with this model. "
    "Supported values are: 'none', 'low', 'medium', 'high', and 'xhigh'."
)


def after(effort: Any, message: str) -> Any:
    """The effort that is sent after a refusal; None where there is no remedy."""
    body = {"reasoning": {"effort": effort}} if effort else {}
    error = refusal_of({"error": {"message": message}}, 400)
    remedy = find_remedy(ROWS, RefusedRequest(body, error))
    if remedy is None:
        return None
    sent, _ = change_body(ROWS, body, [remedy])
    assert change_body(ROWS, {}, [remedy]) == ({}, ())
    return sent.get("reasoning", {}).get("effort", "")


@pytest.mark.parametrize(
    ("effort", "message", "sent"),
    [
        ("minimal", OPENAI, "low"),
        ("max", OPENAI, "xhigh"),
        ("low", "`reasoning_effort` must be one of `none` or `default`", "none"),
        ("blue", OPENAI, ""),
        ("high", OPENAI, None),
        ("max", "reasoning.effort is not supported with this model.", None),
        ("max", "effort: supported values are: 1, 2", None),
        (None, OPENAI, None),
    ],
)
def test_the_nearest_effort_that_a_refusal_names(
    effort: Any, message: str, sent: Any
) -> None:
    assert after(effort, message) == sent


# Refusals that lead to another dialect of the same upstream
CHAT_ROWS = {"dialect": switch_row(CHAT_REFUSED)}

RESPONSES_ROWS = {
    "dialect": switch_row(RESPONSES_REFUSED),
    "path": missing_path_row("openai_chat"),
}

TO_RESPONSES = (
    "Function tools with reasoning_effort are not supported for gpt-5.6 in "
    "/v1/chat/completions. To use function tools, use /v1/responses or set "
    "reasoning_effort to 'none'.",
    "This model is only supported in v1/responses and not in v1/chat/completions.",
    "This is not a chat model and thus not supported in the v1/chat/completions "
    "endpoint. Did you mean to use v1/completions?",
    'model "gpt-5.3-codex" is not accessible via the /chat/completions endpoint',
    "The chatCompletion operation does not work with the specified model, gpt-5-codex.",
)


@pytest.mark.parametrize("message", TO_RESPONSES)
def test_models_that_chat_completions_refuses_are_asked_by_responses(
    message: str,
) -> None:
    error = refusal_of({"error": {"message": message}}, 400)
    refused = RefusedRequest({}, error, dialects=("anthropic", "openai_responses"))
    assert find_remedy(CHAT_ROWS, refused) == Remedy("dialect", "openai_responses")
    alone = RefusedRequest({}, error, dialects=("anthropic",))
    assert find_remedy(CHAT_ROWS, alone) is None


@pytest.mark.parametrize(
    ("status", "message", "change"),
    [
        (400, "gpt-audio is not supported with the Responses API.", "dialect"),
        (404, "This model is only supported in v1/chat/completions.", "dialect"),
        (404, "Not Found", "path"),
        (405, "Method Not Allowed", "path"),
        (501, "File not found", "path"),
        (404, "The model `gpt-9` does not exist or you do not have access", ""),
        (400, "Not Found", ""),
    ],
)
def test_servers_without_responses_are_asked_by_chat_completions(
    status: int, message: str, change: str
) -> None:
    error = refusal_of({"error": {"message": message}}, status)
    remedy = find_remedy(
        RESPONSES_ROWS, RefusedRequest({}, error, dialects=("openai_chat",))
    )
    assert (remedy.change if remedy else "") == change
    assert find_remedy(RESPONSES_ROWS, RefusedRequest({}, error)) is None


SENT = {
    "seed": 7,
    "options": {"num_ctx": 4096, "num_predict": 900, "deep": {"er": True}},
    "alone": {"one": None},
    "a.b": 1,
}

PARAMETERS: RemedyTable = {
    "lower": lower_row(["options.num_predict"]),
    "rename": rename_row({"seed": "options.seed", "options.seed": "seed"}),
    "drop": drop_row(["options.num_ctx", "options.deep.er", "seed", "alone.one"]),
}


def remedy_for(
    body: Any, message: str, *known: Remedy, status: int = 400, extra: Any = ()
) -> Remedy | None:
    error = refusal_of({"error": {"message": message}}, status)
    return find_remedy(PARAMETERS, RefusedRequest(body, error, tuple(extra), known))


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
    assert SENT.keys() - drop_parameter(SENT, path).keys() == gone


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
    assert remedy_for(SENT, message) == remedy


def test_fields_of_the_user_may_be_dropped_at_any_depth() -> None:
    assert remedy_for(SENT, "no num_predict", extra=["options.num_predict"]) == Remedy(
        "drop", "options.num_predict"
    )


def test_a_name_is_changed_once() -> None:
    once = Remedy("rename", "seed")
    body, _ = change_body(PARAMETERS, SENT, [once])
    assert body["options"]["seed"] == 7
    assert remedy_for(body, "options.seed is unknown", once) is None
    both = set_parameter(SENT, "options.seed", 8)
    assert remedy_for(both, "seed: unknown") == Remedy("drop", "seed")


def test_another_parameter_at_fault_comes_before_a_new_name() -> None:
    row = rename_row({"seed": "salt"}, unless=["alone"])
    error = refusal_of({"error": {"message": "neither alone nor seed"}}, 400)
    assert row.find(RefusedRequest(SENT, error)) is None


@pytest.mark.parametrize(
    ("what", "facts"),
    [
        ("options.num_predict", ModelFacts("", max_output=256)),
        ("thinking.budget_tokens", ModelFacts("")),
    ],
)
def test_a_lowered_cap_teaches_the_longest_answer(what: str, facts: ModelFacts) -> None:
    assert PARAMETERS["lower"].teaches(Remedy("lower", what, "256")) == facts
