"""The workflow as Prefect flows; only the command line imports this package."""
