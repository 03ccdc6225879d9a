"""The section with what the user knows about one model of an upstream."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from byok.config import values
from byok.config.section import SettingsSection
from byok.dialects.model_facts import FIELDS, ModelFacts, Price, Replay
from byok.prompts.kinds import FAMILIES

_Dollars = Annotated[float | None, Field(ge=0, le=100_000)]


class FactSettings(SettingsSection):
    """What one model takes; what is not set is found out."""

    family: str = Field(
        "",
        pattern=f"^(?:|{'|'.join(FAMILIES)})$",
        description='The family whose prompts it gets: "claude", "gpt", "gemini", '
        '"qwen", "deepseek", "kimi" or "glm".',
    )
    window: int = Field(
        0,
        ge=0,
        description="Context window in tokens, the answer included; 0: unknown.",
    )
    max_output: int = Field(
        0, ge=0, description="Longest answer in tokens; 0: unknown."
    )
    chats: bool | None = Field(
        None,
        description="Whether it answers chats; others create embeddings, images or "
        "speech.",
    )
    tools: bool | None = Field(None, description="Whether it accepts tools.")
    most_tools: int = Field(
        0, ge=0, description="How many tools it accepts at most; 0: unknown."
    )
    images: bool | None = Field(None, description="Whether it accepts images.")
    thinking: bool | None = Field(None, description="Whether it reasons.")
    efforts: tuple[Annotated[str, AfterValidator(values.effort)], ...] = Field(
        (),
        description='The values of effort that it accepts, such as ["low", "medium", '
        '"high"].',
    )
    sampling: bool | None = Field(
        None, description="Whether it accepts temperature and top_p."
    )
    adaptive_thinking: bool | None = Field(
        None, description="Whether it decides by itself how much to reason (Claude)."
    )
    replay: Literal["", "never", "tool_turns", "every_turn"] = Field(
        "",
        description='When its earlier reasoning is sent back to it: "never", '
        '"tool_turns" or "every_turn".',
    )
    empty_reasoning: bool | None = Field(
        None,
        description="Whether to send an empty reasoning field if there is no "
        "reasoning to send back.",
    )
    dialect: Annotated[str, AfterValidator(values.dialect)] = Field(
        "",
        description="The only API protocol in which it accepts tools, if the upstream "
        "has several.",
    )
    printed_calls: bool | None = Field(
        None,
        description="Whether tool calls that it prints as text are made "
        "(docs/DECISIONS.md says which).",
    )
    price_input: _Dollars = Field(
        None, description="US dollars per million tokens of the prompt."
    )
    price_output: _Dollars = Field(
        None, description="US dollars per million tokens of the answer."
    )
    price_cache_read: _Dollars = Field(
        None,
        description="US dollars per million tokens that the upstream reads from its "
        "cache.",
    )
    price_cache_write: _Dollars = Field(
        None, description="US dollars per million tokens that it writes to its cache."
    )

    @model_validator(mode="before")
    @classmethod
    def _read_former_settings(cls, given: Any) -> Any:
        """Read `tool_syntax`, which named a family of forms, or "off" for none."""
        if not (isinstance(given, dict) and isinstance(given.get("tool_syntax"), str)):
            return given
        kept = {name: value for name, value in given.items() if name != "tool_syntax"}
        if given["tool_syntax"] == "off":
            kept.setdefault("printed_calls", False)
        return kept

    def as_facts(self, model: str) -> ModelFacts:
        """Return the facts about a model that are set."""
        given = self.model_dump()
        given["replay"] = Replay(self.replay) if self.replay else None
        prices = {name: given[f"price_{name}"] for name in Price.__slots__}
        if any(price is not None for price in prices.values()):
            given["price"] = Price(**prices)
        return ModelFacts(model, **{n: given[n] for n in FIELDS if n in given})
