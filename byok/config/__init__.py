"""What the user wants."""

from byok.config.loading import check_files, foreign_variables, load_settings
from byok.config.sections import DEFAULT_PORT, UpstreamSettings
from byok.config.settings import Settings
from byok.config.upstreams import upstream_named

__all__ = [
    "DEFAULT_PORT",
    "Settings",
    "UpstreamSettings",
    "check_files",
    "foreign_variables",
    "load_settings",
    "upstream_named",
]
