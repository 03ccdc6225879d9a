"""Web tools: byok searches the web and reads pages for models."""
