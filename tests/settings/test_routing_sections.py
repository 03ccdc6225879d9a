"""Who answers: models and fallbacks by purpose, aliases, the official service."""

from typing import Any

import pytest
from pydantic import ValidationError

from byok.core.purposes import Purpose
from byok.core.routing import EndpointGroup, ServedBy
from byok.settings import Settings
from byok.settings.sections import FallbackSettings, OfficialSettings

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


A, B = "byok:a:m", "byok:b:m"


def test_config_fallback_of_small_jobs_is_common_to_them() -> None:
    fallback = FallbackSettings(chat=[A], title=[B], small=[A, B])
    assert fallback.for_purpose(Purpose.CHAT) == [A]
    assert fallback.for_purpose(Purpose.EDIT) == []
    assert fallback.for_purpose(Purpose.TITLE) == [B]
    assert fallback.for_purpose(Purpose.SUMMARY) == [A, B]


@pytest.mark.parametrize(
    "given",
    [
        {"fallback": {"chat": ["a model"]}},
        {"fallback": {"chat": ["byok:a"]}},
        {"fallback": {"chat": A}},
        {"fallback": {"small": ["vendor/model"]}},
        {"aliases": {"fast": "slow"}},
        {"aliases": {"byok:a:b": A}},
        {"aliases": {"": A}},
    ],
    ids=str,
)
def test_config_fallback_and_alias_name_whole_models(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Settings(routing=given)
