"""Web tools: models search the web and read pages; byok does it for them."""
