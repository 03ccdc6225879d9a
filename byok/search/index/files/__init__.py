"""Which files below a folder are read, and how."""
