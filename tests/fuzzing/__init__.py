"""Damaged files for every reader: a correct read or a clear error, whatever is in them."""
