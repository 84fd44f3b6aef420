"""`python -m reward_profiling` is the `reward-profiling` command."""

from reward_profiling.cli.entry import main

main()
