"""The `reward-profiling` command: which commands there are, and how it ends.

Commands are named by path and imported when they are called, so that working on files
does not import Prefect.
"""

from contextlib import AbstractContextManager, nullcontext

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter

from reward_profiling.cli.exit_codes import STOPPED, ExitCode, code_of, words_of
from reward_profiling.cli.option_groups import leave_checks_to_values
from reward_profiling.cli.terminal.help_page import HelpPage
from reward_profiling.cli.terminal.screen import complain
from reward_profiling.errors import RewardProfilingError
from reward_profiling.files.own_version import own_version


def _default_shown(value: object) -> str | None:
    """Return a default as the help shows it; none where nothing is the default."""
    return None if value in (None, False, (), {}) else str(value)


app = App(
    name="reward-profiling",
    help="Profile the rewards of NeMo Gym environments: repeated rollouts of every"
    " task, collected so that nothing is lost.",
    version=own_version,
    default_parameter=Parameter(
        json_dict=False,
        json_list=True,
        negative=(),
        consume_multiple=True,
        show_default=_default_shown,
    ),
    config=leave_checks_to_values,
    exit_on_error=False,
    print_error=False,
    help_on_error=False,
    help_format="plaintext",
    help_formatter=HelpPage(),
    version_format="plaintext",
)
_WORKFLOW = {
    "The whole workflow": {
        "demo": "Profile the embedded environment: no Gym, no model needed.",
        "run": "Plan, collect and profile; again, to do only the rest.",
    },
    "Step by step": {
        "materialize": "Write the plan: one line per rollout to collect.",
        "collect": "Collect what a plan still owes.",
        "aggregate": "Ask the servers for their own metrics again.",
        "merge": "Put an output's shards together.",
    },
    "What the rewards say": {
        "profile": "Profile collected rollouts, as Gym does.",
        "inspect": "Show what an output holds.",
        "report": "Write a page that shows what the rewards say.",
    },
    "What follows from it": {
        "select": "Keep the task rows that can teach, by their pass rate.",
        "compare": "Judge a candidate's rewards against a baseline's.",
        "export": "Log a profile to Weights & Biases or MLflow.",
    },
    "By schedule, with Prefect": {
        "deploy": "Register deployments and automations in Prefect.",
        "worker": "Run what is deployed and due, until stopped.",
    },
}
_MODULES = {
    "demo": "run",
    "aggregate": "collect",
    "profile": "profiling",
    "inspect": "inspection",
    "select": "selection",
    "compare": "comparison",
    "worker": "deploy",
}
"""Where a command is, unless in the module of its name."""
for title, commands in _WORKFLOW.items():
    group = Group.create_ordered(title)
    for place, (name, says) in enumerate(commands.items()):
        path = f"reward_profiling.cli.commands.{_MODULES.get(name, name)}:{name}"
        app.command(path, name=name, help=says, group=group, sort_key=place)
_FLAGS = Group.create_ordered("Options")
app["--help"].group = app["--version"].group = (_FLAGS,)

_NO_SERVERS = "give one of --head-url, --gym-config, --gym-resources-server and --demo"


def run(
    arguments: list[str], starting: AbstractContextManager[object] | None = None
) -> int:
    """Run one command and return its exit code; errors are told, not traced.

    `starting` is entered until the arguments are read, and what the command needs is
    imported.
    """
    try:
        with starting or nullcontext():
            command, bound, _ = app.parse_args(arguments)
        return int(command(*bound.args, **bound.kwargs) or ExitCode.WHOLE)
    except CycloptsError as error:
        complain(_said(error))
    except (RewardProfilingError, OSError) as error:
        complain(words_of(error))
        return code_of(error)
    except KeyboardInterrupt:
        complain(STOPPED)
        return ExitCode.INTERRUPTED
    return ExitCode.REFUSED


def _said(error: CycloptsError) -> str:
    """Say what is wrong; of servers, which is no option's name, what there is."""
    lacks = error.argument if isinstance(error, MissingArgumentError) else None
    if lacks is not None and lacks.field_info.name == "servers":
        return _NO_SERVERS
    return str(error)
