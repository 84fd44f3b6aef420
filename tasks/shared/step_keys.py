"""What the result of each step depends on: its settings, and the files it reads.

Ports and times are left out, and so are settings that only change a step's speed.
"""

from pathlib import Path

from reward_profiling.planning.additions.option_files import option_files
from reward_profiling.tasks.shared.step_results import Given, by_content


def _plan_settings(given: Given) -> object:
    checked, servers = given["checked"], given["servers"]
    paths = checked.path.absolute(), given["files"].rollouts.absolute()
    return (*paths, checked.options, servers.policy_model, servers.assignment)


def _plan_files(given: Given) -> list[Path]:
    checked = given["checked"]
    return [checked.path, *option_files(checked.options)]


def _aggregate_settings(given: Given) -> object:
    servers = given["servers"]
    output = given["files"].rollouts.absolute()
    return (output, given["options"], servers.assignment)


def _profile_settings(given: Given) -> object:
    stops = [(one.stopped, one.is_failed) for one in given["shards"] if one.stopped]
    return (given["files"].rollouts.absolute(), given["options"], stops)


def _records(given: Given) -> list[Path]:
    files = given["files"]
    return [files.materialized_inputs, files.rollouts, files.failures]


def _insights_settings(given: Given) -> object:
    return (given["summary"], given["options"])


def _insights_files(given: Given) -> list[Path]:
    files = given["files"]
    return [*_records(given), files.timings, files.run]


PLAN = by_content("materialize-inputs", _plan_settings, _plan_files)
AGGREGATE = by_content("aggregate-metrics", _aggregate_settings, _records)
PROFILE = by_content("profile-rewards", _profile_settings, _records)
INSIGHTS = by_content("derive-insights", _insights_settings, _insights_files)
