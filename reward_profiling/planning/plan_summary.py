"""What a materialization came to."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanSummary:
    """What a materialization wrote."""

    path: str
    """The materialized inputs, one line per planned rollout."""

    num_tasks: int
    """Distinct task indices."""

    num_rollouts: int
    """Lines of the plan."""

    num_new: int
    """Lines that an earlier plan at this path did not have."""

    warnings: tuple[str, ...] = ()
    """What a person should know of the input, one sentence each."""

    manifest: str = ""
    """What the plan was made from: a file beside it."""

    @property
    def written(self) -> tuple[str, ...]:
        """Files that hold the plan."""
        return (self.path, self.manifest)

    @property
    def is_reusable(self) -> bool:
        """Whether the plan is whole: it is written whole or not at all."""
        return True
