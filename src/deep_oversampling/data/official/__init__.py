"""The sets that are known by name: their official files fetched, checked and read."""
