"""Servers: Gym over HTTP and as a child process; readiness and routes."""
