"""Aggregate: each environment server's own metrics over what was collected.

Source: `gym-contract.md` §3.8 and §1.4. A server that cannot is a warning: the
rollouts are safe, and can be aggregated again.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from reward_profiling import wire
from reward_profiling.collecting.aggregation.aggregate_summary import AggregateSummary
from reward_profiling.collecting.aggregation.imputation import (
    failure_as_zero,
    fill_task_fields,
    missing_as_zero,
)
from reward_profiling.collecting.on_disk.failures import read_failures
from reward_profiling.collecting.options import AggregateOptions
from reward_profiling.errors import GymError
from reward_profiling.files.json_lines import (
    located,
    parse_record,
    read_lines,
    replace_bytes,
)
from reward_profiling.files.run_files import RunFiles
from reward_profiling.planning.on_disk.plan_file import read_plan
from reward_profiling.planning.row_members import (
    NO_AGENT,
    RolloutKey,
    agent_name,
    rollout_key,
)
from reward_profiling.servers.gym_client import GymClient, gym_client
from reward_profiling.servers.routes import Servers

_LEFT_OUT = frozenset({
    wire.RESPONSE, wire.PARAMS, "ng_agent_observations", "ng_model_call_capture",
    "ng_trajectory",
})  # fmt: skip
_KEPT_OF_RESPONSE = (wire.USAGE, wire.INCOMPLETE_DETAILS)
_AS_THEY_ARE = AggregateOptions()
Row = dict[str, Any]
_KINDS = {dict: "an object", list: "a list"}
_ANSWER = (
    ("agent_metrics", dict),
    ("key_metrics", dict),
    ("group_level_metrics", list),
    ("repeat_level_metrics", list),
)


@dataclass(slots=True)
class _Group:
    """The records that one environment server made."""

    url: str | None
    """None when the servers that run now do not have it."""
    server: str | None
    agent: str | None
    """The agent that its metrics are counted for: that of its first record, or the one
    that the server is bound to."""
    agents: set[str] = field(default_factory=set)
    records: list[dict[str, Any]] = field(default_factory=list)


async def aggregate(
    files: RunFiles, servers: Servers, options: AggregateOptions = _AS_THEY_ARE
) -> AggregateSummary:
    """Ask each environment server for its metrics and write them beside the output.

    Raises:
        ConfigError: there is no rollouts file.
        RecordError: a record cannot be read.
        DatasetError: a record names no environment server, and its agent is unknown to
            the servers that run now.
    """
    records = _records(files)
    failures = _failures_as_zero(files, records, options)
    missing = _missing_as_zero(files, records, options)
    groups = _groups([*records, *failures, *missing], servers)
    if failures or missing:
        _fill_task_fields(files, groups, {id(row) for row in [*failures, *missing]})
    labels = _labels(groups)
    # A server may take minutes to aggregate tens of thousands of records.
    async with gym_client(read_seconds=600.0) as client:
        answers = await asyncio.gather(*(_ask(client, group) for group in groups))
    entries = [
        _entry(label, group, answer)
        for group, label, answer in zip(groups, labels, answers, strict=True)
        if isinstance(answer, Mapping)
    ]
    if entries:
        content = orjson.dumps(entries, option=orjson.OPT_INDENT_2)
        replace_bytes(files.aggregate_metrics, content)
    return AggregateSummary(
        path=str(files.aggregate_metrics) if entries else None,
        num_servers=len(groups),
        num_failures_as_zero=len(failures),
        num_missing_as_zero=len(missing),
        warnings=tuple(a for a in answers if isinstance(a, str)),
    )


def _failures_as_zero(
    files: RunFiles, records: Sequence[Row], options: AggregateOptions
) -> list[Row]:
    """Return the last failure of each rollout without a record, if its class counts."""
    wanted = options.count_failure_classes_as_zero
    if not wanted:
        return []
    collected = {rollout_key(record) for record in records}
    return [
        failure_as_zero(failure)
        for key, failure in _last_failures(files).items()
        if key not in collected and failure.get(wire.FAILURE_CLASS) in wanted
    ]


def _last_failures(files: RunFiles) -> dict[RolloutKey, Row]:
    return {key: _trimmed(failure) for key, failure in read_failures(files.failures)}


def _missing_as_zero(
    files: RunFiles, records: Sequence[Row], options: AggregateOptions
) -> list[Row]:
    """Return a zero for each planned rollout that left no line anywhere."""
    if not options.count_missing_rollouts_as_zero:
        return []
    known = {rollout_key(record) for record in records} | _last_failures(files).keys()
    return [
        missing_as_zero(row)
        for row in _planned_rows(files)
        if rollout_key(row) not in known
        and (agent_name(row) is not None or _stamp(row) is not None)
    ]


def _planned_rows(files: RunFiles) -> Iterator[Row]:
    path = files.materialized_inputs
    for row in read_plan(path) if path.exists() else ():
        yield row.members


def _fill_task_fields(files: RunFiles, groups: list[_Group], added: set[int]) -> None:
    """Give the added zeros their task's dataset fields, as far as records have them."""
    wanted: dict[RolloutKey, tuple[Row, set[str]]] = {}
    for group in groups:
        real = [record for record in group.records if id(record) not in added]
        carried = {name for record in real for name in record}
        for record in group.records:
            if id(record) in added:
                wanted[rollout_key(record)] = (record, carried)
    for row in _planned_rows(files):
        if (found := wanted.get(rollout_key(row))) is not None:
            fill_task_fields(found[0], row, found[1])


def _groups(records: list[Row], servers: Servers) -> list[_Group]:
    """Group the records by the server that made them, in order of their first key."""
    # Sorted, so that the result does not depend on the order in which rollouts ended.
    records = sorted(
        records, key=lambda r: [(isinstance(i, str), i) for i in rollout_key(r)]
    )
    routes = servers.routes(
        {
            agent
            for record in records
            if not _stamp(record) and (agent := agent_name(record)) is not None
        }
    )
    groups: dict[str, _Group] = {}
    for record in records:
        agent, stamp = agent_name(record), _stamp(record)
        route = servers.environment(stamp) if stamp else routes.get(agent or "")
        server = stamp or (route.server if route else None)
        name = server or agent or NO_AGENT
        if name not in groups:
            url = route.url if route else None
            bound = servers.attributed_agents([server] if server else [])
            groups[name] = _Group(url, server, agent or bound.get(name))
        group = groups[name]
        group.agents |= {agent} if agent else set()
        group.records.append(record)
    return list(groups.values())


def _records(files: RunFiles) -> list[dict[str, Any]]:
    """Read the records that are asked about."""
    records = []
    if files.rollouts.exists():
        for line in read_lines(files.rollouts):
            with located(files.rollouts, line.number):
                record = parse_record(line.text)
                agent_name(record)
                rollout_key(record)
                records.append(_trimmed(record))
    return records


def _stamp(record: Mapping[str, Any]) -> str | None:
    stamp = record.get(wire.ENVIRONMENT_SERVER)
    return stamp if isinstance(stamp, str) and stamp else None


def _trimmed(record: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is large; of `response` keep usage and why it was cut short."""
    trimmed = {name: v for name, v in record.items() if name not in _LEFT_OUT}
    response = record.get(wire.RESPONSE)
    if isinstance(response, Mapping):
        kept = {
            name: response[name]
            for name in _KEPT_OF_RESPONSE
            if response.get(name) is not None
        }
        if kept:
            trimmed[wire.RESPONSE] = kept
    return trimmed


def _labels(groups: list[_Group]) -> list[str]:
    """Label a group by its agent, unless that is another group's as well.

    Then, and where a label is another group's server, the server's name is taken.
    """
    counted = Counter(group.agent for group in groups)
    labels = [
        group.agent if group.agent and counted[group.agent] == 1 else _name(group)
        for group in groups
    ]
    while clashing := [
        place
        for place, label in enumerate(labels)
        if labels.count(label) > 1 and label != _name(groups[place])
    ]:
        for place in clashing:
            labels[place] = _name(groups[place])
    return labels


def _name(group: _Group) -> str:
    return group.server or ", ".join(sorted(group.agents)) or NO_AGENT


async def _ask(client: GymClient, group: _Group) -> dict[str, Any] | str:
    """Return the server's answer, or what went wrong with it as a sentence."""
    name = group.server or ", ".join(sorted(group.agents)) or "a record without agent"
    failed = f"{name} could not aggregate its metrics"
    if group.url is None:
        return f"{failed}: it is not among the servers that run now"
    try:
        answer = await client.aggregate_metrics(group.url, group.records)
    except GymError as error:
        return f"{failed}: {error}"
    for key, kind in _ANSWER:
        if not isinstance(answer.get(key, kind()), kind):
            return f"{failed}: its {key} is not {_KINDS[kind]}"
    return answer


def _entry(label: str, group: _Group, answer: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {wire.AGENT_REF: {"name": label}}
    if group.server is not None:
        entry[wire.ENVIRONMENT_SERVER] = group.server
    for key, kind in _ANSWER:
        entry[key] = answer.get(key, kind())
    if answer.get("perf_summary") is not None:
        entry["perf_summary"] = answer["perf_summary"]
    return entry
