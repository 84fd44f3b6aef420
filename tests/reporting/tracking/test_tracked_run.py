import math

import msgspec

from reward_profiling.insights.document import derive_insights
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.reporting.tracking.tracked_run import tracked_run
from tests.insights.tables import Rollout, table_of


def test_a_tracker_gets_numbers_by_name() -> None:
    table = table_of([[Rollout(1.0, agent="a"), Rollout(0.0, agent="b")] * 2] * 6)
    found = derive_insights(table, ProfileOptions())
    head = msgspec.structs.replace(found, output="monday.jsonl", model="m")

    run = tracked_run(head, ("x",), "project")

    assert (run.name, run.project, run.files) == ("monday", "project", ("x",))
    assert run.settings["model"] == "m"
    assert run.settings["signal_tolerance"] == "1e-06"
    assert run.metrics["reward/macro_mean"] == 0.5
    assert run.metrics["a/reward/macro_mean"] == 1.0
    assert run.metrics["b/pass_at/2"] == 0.0
    assert run.metrics["rollouts/scored"] == 24
    assert run.metrics["findings/critical"] == sum(
        found.severity == "critical" for found in head.findings
    )
    assert all(math.isfinite(value) for value in run.metrics.values())


def test_what_is_unknown_is_not_told() -> None:
    head = derive_insights(table_of([[1.0]]), ProfileOptions())

    metrics = tracked_run(head, (), "p").metrics

    assert "reward/standard_error" not in metrics
    assert "length/mean_tokens" not in metrics
