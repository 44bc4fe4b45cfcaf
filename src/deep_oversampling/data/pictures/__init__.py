"""A user's own pictures: which there are, what size suits them, decoded once."""
