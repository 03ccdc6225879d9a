"""The operating system: paths of files, programs, processes, module search path."""
