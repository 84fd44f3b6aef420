"""`python -m flows` is the `reward-profiling` command."""

from flows.cli import main

main()
