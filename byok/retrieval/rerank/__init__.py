"""A model that helps to put files in order."""
