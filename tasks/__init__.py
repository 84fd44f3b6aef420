"""The steps of the workflow, as Prefect tasks."""
