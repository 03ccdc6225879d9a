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
        description="The family whose prompts it is told.",
    )
    window: int = Field(0, ge=0, description="Context window in tokens.")
    max_output: int = Field(0, ge=0, description="Longest answer in tokens.")
    chats: bool | None = Field(None, description="It answers chats.")
    tools: bool | None = Field(None, description="It accepts tools.")
    most_tools: int = Field(0, ge=0, description="How many tools at most.")
    images: bool | None = Field(None, description="It accepts pictures.")
    thinking: bool | None = Field(None, description="It reasons.")
    efforts: tuple[Annotated[str, AfterValidator(values.effort)], ...] = Field(
        (), description="The values of effort that it accepts, the smallest first."
    )
    sampling: bool | None = Field(None, description="It takes temperature and top_p.")
    adaptive_thinking: bool | None = Field(
        None, description="It decides by itself how much to reason (Anthropic)."
    )
    replay: Literal["", "never", "tool_turns", "every_turn"] = Field(
        "", description="Which of its reasoning is sent back."
    )
    empty_reasoning: bool | None = Field(
        None, description="Send an empty reasoning where none is known."
    )
    dialect: Annotated[str, AfterValidator(values.dialect)] = Field(
        "", description="The only API protocol in which it takes tools."
    )
    printed_calls: bool | None = Field(
        None, description="Read tool calls that it prints as text."
    )
    price_input: _Dollars = Field(None, description="US dollars per million tokens.")
    price_output: _Dollars = Field(None, description="The same, of the answer.")
    price_cache_read: _Dollars = Field(
        None, description="The same, of what is read from the upstream's cache."
    )
    price_cache_write: _Dollars = Field(
        None, description="The same, of what is written to it."
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
