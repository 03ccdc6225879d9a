"""What the user wants."""

from byok.config.checking import check_files, check_models, check_settings
from byok.config.loading import example, foreign_variables, load_settings
from byok.config.masking import masked
from byok.config.sections import DEFAULT_PORT, UpstreamSettings
from byok.config.settings import Settings
from byok.config.upstreams import known_upstreams, upstream_named

__all__ = [
    "DEFAULT_PORT",
    "Settings",
    "UpstreamSettings",
    "check_files",
    "check_models",
    "check_settings",
    "example",
    "foreign_variables",
    "known_upstreams",
    "load_settings",
    "masked",
    "upstream_named",
]
