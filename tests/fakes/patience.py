"""How long a test waits for what has to happen."""

# Seconds: many times what anything takes where thirty busy processes share the
# processors with the tests, and less than the minute and more that tests name where
# byok must not wait for something.
PATIENCE = 50.0

# Seconds for programs to start and to say so.
START = 150.0
