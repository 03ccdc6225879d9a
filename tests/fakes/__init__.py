"""What tests use together: stand-ins for the world outside, and inputs to try.

The first line of a file says what it stands for: head -qn1 tests/fakes/*.py
"""
