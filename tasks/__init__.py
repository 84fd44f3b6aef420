"""Steps of the workflow, the operations they run, and the pure core under both."""
