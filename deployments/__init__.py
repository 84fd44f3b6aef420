"""What is registered in Prefect: deployments, their work pool, and automations."""
