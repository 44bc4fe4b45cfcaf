"""How the paper used DOS: its sets, experiments and tables, and our numbers beside its own."""
