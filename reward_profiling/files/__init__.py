"""Files: lines of JSON, locks, stamps and tables, which every station writes with."""
