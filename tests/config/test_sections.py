"""Each key has a description and a range."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from byok.config import Settings, sections
from byok.config.sections import OfficialSettings
from byok.routing import EndpointGroup, ServedBy


def test_config_section_keys_have_descriptions() -> None:
    types = [t for t in vars(sections).values() if isinstance(t, type)]
    found = [t for t in types if issubclass(t, BaseModel)]
    assert len(found) >= 15
    for section in found:
        for name, field in section.model_fields.items():
            text = field.description or ""
            assert text.endswith("."), f"{section.__name__}.{name} has no description"


@pytest.mark.parametrize(
    "given",
    [
        {"chat": {"temperature": 2.1}},
        {"chat": {"temperature": float("nan")}},
        {"chat": {"top_p": 0}},
        {"chat": {"max_tokens": 0}},
        {"chat": {"context_chars": 999}},
        {"chat": {"context_chars": 400_001}},
        {"limits": {"streams": 0}},
        {"limits": {"connections": 7}},
        {"limits": {"waiting": -1}},
        {"limits": {"wait_seconds": 61}},
        {"log": {"level": "loud"}},
        {"tools": {"repair": "more"}},
        {"completion": {"way": "telepathy"}},
        {"completion": {"timeout_ms": 99}},
        {"completion": {"max_tokens": 0}},
        {"upstreams": {"demo": {"timeout": -1}}},
        {"routing": {"official": {"chat": "elsewhere"}}},
        {"routing": {"official": {"models": "off"}}},
        {"routing": {"official": {"token": "x"}}},
    ],
    ids=str,
)
def test_config_value_out_of_range_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(**given)


URL = "https://h.example"


def test_config_default_is_local_and_telemetry_is_off() -> None:
    for official in (OfficialSettings(), OfficialSettings(base_url=URL)):
        places = {group: official.where(group) for group in EndpointGroup}
        assert places.pop(EndpointGroup.TELEMETRY) is ServedBy.OFF
        assert set(places.values()) == {ServedBy.LOCAL}
        assert official.groups == ()
        assert not official.lacks_address


@pytest.mark.parametrize("group", EndpointGroup)
def test_config_section_exists_for_every_endpoint_group(group: EndpointGroup) -> None:
    official = OfficialSettings.model_validate({"base_url": URL, group: "official"})
    assert official.groups == (group,)
    assert official.where(group) is ServedBy.OFFICIAL


def test_config_without_an_official_url_sends_nothing_there() -> None:
    official = OfficialSettings(chat=ServedBy.OFFICIAL, edit=ServedBy.OFF)
    assert official.lacks_address
    assert official.groups == ()
    assert official.where(EndpointGroup.CHAT) is ServedBy.LOCAL
    assert official.where(EndpointGroup.EDIT) is ServedBy.OFF
