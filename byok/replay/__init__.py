"""Captured requests once more: offline against today's decoder, or asked anew."""
