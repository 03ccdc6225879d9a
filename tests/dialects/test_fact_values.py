"""Values of model facts: read from lists and files that nobody vouches for."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from byok.dialects.model_facts import (
    FIELDS,
    ModelFacts,
    Price,
    Replay,
    read_dollars,
    read_efforts,
    read_facts,
    read_flag,
    read_number,
    read_window,
    write_facts,
)
from tests.fakes.values import OBJECTS, VALUES

ALL = ModelFacts(
    "m",
    window=400_000,
    max_output=128_000,
    chats=True,
    tools=True,
    most_tools=128,
    images=False,
    thinking=True,
    efforts=("low", "high"),
    sampling=False,
    adaptive_thinking=True,
    replay=Replay.TOOL_TURNS,
    empty_reasoning=True,
    dialect="openai_responses",
    printed_calls=False,
    family="qwen",
    price=Price(1.25, 10.0, 0.0, None),
)
# Only of the server that loaded it, for as long as it is loaded.
PASSING = {"loaded_window", "token_memory"}


def test_facts_that_were_written_are_read_again() -> None:
    assert set(ALL.known_fields()) == set(FIELDS) - PASSING
    written = json.loads(json.dumps(write_facts(ALL)))
    assert read_facts("m", written) == ALL
    assert read_facts("m", write_facts(ModelFacts("m"))) == ModelFacts("m")
    assert write_facts(ModelFacts("m", loaded_window=4096)) == {}


@given(OBJECTS | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES)))
def test_facts_may_be_any_json(value: Any) -> None:
    facts = read_facts("m", value)
    assert read_facts("m", write_facts(facts)) == facts


@pytest.mark.parametrize(
    "odd", [0, -1, True, 5, 2**40, 10**400, "x", "1e99", 1.5, None, [1], float("nan")]
)
def test_a_window_that_cannot_be_one_is_unknown(odd: Any) -> None:
    assert read_window(odd) == 0


@pytest.mark.parametrize("value", [32_768, 32_768.0, "32768", " 32768 "])
def test_a_window_may_be_a_string(value: Any) -> None:
    assert read_window(value) == 32_768


@pytest.mark.parametrize("odd", ["", "１", "9" * 40, "inf", "-1", None, {}, False])
def test_a_number_is_finite_and_not_below_zero(odd: Any) -> None:
    assert read_number(odd) is None


def test_prices_flags_and_efforts() -> None:
    assert read_dollars("0.25") == 0.25
    assert read_dollars(10**9) is None
    assert (read_flag(False), read_flag("yes")) == (False, None)
    assert read_efforts(["high", "low", "odd", 3]) == ("low", "high")
    assert read_efforts("low") == ()
