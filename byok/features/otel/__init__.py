"""OpenTelemetry spans of requests to models, sent to the user's own collector."""
