"""Files in, Samples out; and the protocols that make balanced data imbalanced."""
