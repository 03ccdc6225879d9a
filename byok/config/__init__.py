"""The settings of the user: sections, sources, validation."""

from byok.config.checking import (
    check_files,
    check_models,
    check_settings,
    chosen_models,
)
from byok.config.loading import (
    example,
    foreign_variables,
    load_settings,
    make_settings,
)
from byok.config.masking import mask_settings
from byok.config.sections import DEFAULT_PORT, UpstreamSettings
from byok.config.settings import Settings
from byok.config.upstreams import upstream_named, upstream_names

__all__ = [
    "DEFAULT_PORT",
    "Settings",
    "UpstreamSettings",
    "check_files",
    "check_models",
    "check_settings",
    "chosen_models",
    "example",
    "foreign_variables",
    "load_settings",
    "make_settings",
    "mask_settings",
    "upstream_named",
    "upstream_names",
]
