"""What the model tiny-tools of a real llama-server answers, and how byok is set up."""

from typing import Any

from tests.fakes.daemon import settings_for

MODEL = "tiny-tools"

GREETING = "Grüße, 世界 🌍👩\u200d👩\u200d👧! Done."


def settings(llama: str, **fields: Any) -> dict[str, Any]:
    return settings_for(f"{llama}/v1", type="llamacpp", temperature=0, **fields)
