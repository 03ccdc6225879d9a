"""Answering "where is ..." from the index, or with ripgrep where there is none."""
