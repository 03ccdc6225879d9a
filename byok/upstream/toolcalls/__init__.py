"""Tool calls: assemble fragments, repair arguments, remember provider data."""
