"""What a command does, as a function: on files, or awaited where servers are asked."""
