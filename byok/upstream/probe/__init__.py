"""The probe: finds out what a model accepts and does, with a few small requests."""
