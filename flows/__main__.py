"""`python -m flows` is the `reward-profiling` command."""

from flows.entry import main

main()
