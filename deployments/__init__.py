"""What Prefect is told once: deployments, their work pool, and automations."""
