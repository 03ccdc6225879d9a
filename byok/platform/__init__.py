"""The operating system: byok's files, programs, processes, the module search path."""
