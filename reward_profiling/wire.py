"""Gym 0.7.0's spellings, each typed once.

Source: `gym-contract.md` §0 (reserved keys), §1 (file names), §3 (requests).
"""

NG_PREFIX = "_ng_"
TASK_INDEX = "_ng_task_index"
ROLLOUT_INDEX = "_ng_rollout_index"
ATTEMPT_INDEX = "_ng_attempt_index"
ROLLOUT_ID = "_ng_rollout_id"
ENVIRONMENT_SERVER = "_ng_environment_server"
RESULT_TYPE = "_ng_result_type"
RESULT_TASK_ID = "_ng_task_id"

FAILURE_CLASS = "_ng_failure_class"
FAILURE_TYPE = "_ng_failure_type"
FAILURE_MESSAGE = "_ng_failure_message"
FAILURE_JUDGE_ERROR = "_ng_failure_judge_error"
FAILURE_STATUS = "_ng_failure_http_status"
FAILURE_BODY = "_ng_failure_response_body"
FAILURE_PREFIX = "_ng_failure_"
FAILURE_TERMINAL = "_ng_failure_terminal"
FAILURE_STAGE = "_ng_failure_stage"
FAILURE_PARTIAL_RESPONSE = "_ng_failure_partial_response"
NO_PERSIST = "_ng_no_persist"

AGENT_REF = "agent_ref"
TASK_SOURCE = "task_source"
SKILLS_REF = "skills_ref"
PARAMS = "responses_create_params"
INPUT = "input"
TASK_ID = "task_id"
TASK_INPUT = "task_input"
TASKSET = "taskset"
ENVELOPE_ID = "episode_id"
RESULT = "result"
FAILURE = "failure"
REWARD = "reward"
RESPONSE = "response"
USAGE = "usage"
MASK_SAMPLE = "mask_sample"
INCOMPLETE_DETAILS = "incomplete_details"

# What a collection writes into a record beside its stamps.
OBSERVATIONS = frozenset({"ng_model_call_capture", "ng_perf", "ng_trajectory"})

# Failure classes that the client gives, and the statuses that mean "not the agent".
REQUEST_FAILED = "agent_request_failed"
RUN_ERROR = "agent_run_error"
CONTEXT_LENGTH = "context_length_exceeded"  # ours: Gym has no class for it
ENVIRONMENT_FAILED = "environment_server_failed"
REQUEST_FAILED_STATUSES = frozenset({429, 502, 503, 504})

# Server types of the merged configuration.
AGENTS = "responses_api_agents"
ENVIRONMENT_SERVERS = "environment_servers"
RESOURCES_SERVERS = "resources_servers"

RUN_PATH = "/run"
AGGREGATE_PATH = "/aggregate_metrics"
CONFIG_PATH = "/global_config_dict_yaml"
READY_PATH = "/readyz"
INSTANCES_PATH = "/server_instances"
HEALTH_PATH = "/health"

DEMO_VARIABLE = "REWARD_PROFILING_DEMO_TOKEN"
"""Ours: the variable with the token of the embedded environment."""

_BY_FIELD = {
    "task_index": TASK_INDEX,
    "rollout_index": ROLLOUT_INDEX,
    "attempt_index": ATTEMPT_INDEX,
    "rollout_id": ROLLOUT_ID,
    "environment_server": ENVIRONMENT_SERVER,
    "result_type": RESULT_TYPE,
    "failure_class": FAILURE_CLASS,
    "failure_terminal": FAILURE_TERMINAL,
    "no_persist": NO_PERSIST,
}


def gym_name(field: str) -> str | None:
    """Return Gym's spelling of a field; None for one that is spelled the same.

    For `rename` of the structs that read single members of a line.
    """
    return _BY_FIELD.get(field)
