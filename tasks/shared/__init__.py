"""What steps and flows share: the present run, its page, kept results, Prefect."""
