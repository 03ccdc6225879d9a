"""What models are told: texts with slots, one file a purpose, and the user's own."""
