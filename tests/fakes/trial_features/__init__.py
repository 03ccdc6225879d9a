"""A feature that byok does not have, for the test that one is a folder and a row."""
