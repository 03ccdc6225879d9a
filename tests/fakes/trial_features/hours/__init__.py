"""Requests by the hour, since byok started."""
