"""Questions in other languages: what their words mean in English."""
