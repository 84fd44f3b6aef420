"""What a plan adds to its rows from files of its own: a prompt, and skills."""
