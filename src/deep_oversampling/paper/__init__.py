"""How the paper used DOS."""
