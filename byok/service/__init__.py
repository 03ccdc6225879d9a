"""The daemon as a service of the user's system: there after a login and a crash."""
