"""Records as columns: scanned from lines, or read back from an earlier profile."""
