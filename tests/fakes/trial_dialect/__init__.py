"""A protocol for the tests of the seam: the worked example of CONTRIBUTING.md."""
