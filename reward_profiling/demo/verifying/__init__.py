"""How an answer is scored: the verifiers, and what they read of it."""
