"""Settings as they may be shown."""

import json

from byok.settings import Settings, mask_settings

CANARY = "sk-canary0123456789"


def test_masking_hides_secrets_and_shows_the_rest() -> None:
    box = {
        "base_url": "https://box.example",
        "api_key_cmd": ["pass", "show", CANARY],
        "headers": {"X-Team": CANARY},
        "query": {"code": CANARY},
        "extra_body": {"user": CANARY},
        "proxy": f"http://{CANARY}@proxy.example:3128",
    }
    team = {"url": "https://q.example", "team": "a"}
    team["proxy"] = f"http://me:p@/{CANARY}@proxy.example:2"
    settings = Settings(
        embeddings={"team": team},
        prompts={"chat": f"see https://me:{CANARY}@docs.example/@a?b=c@d"},
        network={"proxy": f"http://me:{CANARY}@proxy.example:1"},
        chat={"headers": {"X-Everybody": CANARY}, "temperature": 0.5},
        upstreams={"box": box},
    )
    shown = mask_settings(settings)
    assert CANARY not in json.dumps(shown)
    assert shown["chat"]["temperature"] == 0.5
    assert shown["network"]["proxy"] == "http://proxy.example:1"
    assert shown["upstreams"]["box"]["proxy"] == "http://proxy.example:3128"
    assert shown["embeddings"]["team"]["proxy"] == "http://proxy.example:2"
    assert shown["prompts"]["chat"] == "see https://docs.example/@a?b=c@d"
    assert shown["upstreams"]["box"]["api_key_cmd"] == ["pass"]
    assert shown["upstreams"]["box"]["headers"] == {"X-Team": "***"}
