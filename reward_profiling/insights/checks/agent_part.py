"""What a check of an agent's health looks at, and what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass

from reward_profiling.insights.section import Section
from reward_profiling.insights.units import Unit
from reward_profiling.profiling.finding import Evidence, Finding, Severity
from reward_profiling.profiling.options import ProfileOptions
from reward_profiling.profiling.rollout_table import RolloutTable


@dataclass(frozen=True, slots=True)
class AgentPart:
    """One agent's part of a run, as the checks see it."""

    table: RolloutTable
    units: Sequence[Unit]
    section: Section
    options: ProfileOptions

    def finding(
        self,
        name: str,
        severity: Severity,
        sentence: str,
        remedy: str,
        **evidence: Evidence,
    ) -> Finding:
        """Return a finding about this agent."""
        return Finding(
            name=name,
            severity=severity,
            agent=self.section.agent,
            sentence=sentence,
            evidence=evidence,
            remedy=remedy,
        )
