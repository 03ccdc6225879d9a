"""What is asked of others: with consent, with bounds, and not again at once."""
