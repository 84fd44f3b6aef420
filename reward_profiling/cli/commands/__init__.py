"""The commands, grouped by what they need to import: files, HTTP, or Prefect."""
