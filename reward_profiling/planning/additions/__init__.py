"""What a plan adds to its rows from other files: a prompt, and skills."""
