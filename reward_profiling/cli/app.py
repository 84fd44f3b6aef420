"""The `reward-profiling` command: which commands there are, and how it ends.

Commands are named by path and imported when they are called, so that working on files
does not import Prefect.
"""

import sys

from cyclopts import App, CycloptsError, Parameter
from pydantic import ValidationError

from reward_profiling.cli.exit_codes import ExitCode
from reward_profiling.cli.plain_errors import STOPPED, code_of, words_of
from reward_profiling.cli.terminal import complain, option_faults
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
        json_dict=True,
        json_list=True,
        negative=(),
        consume_multiple=True,
        show_default=_default_shown,
    ),
    exit_on_error=False,
    print_error=False,
    help_on_error=False,
    suppress_keyboard_interrupt=False,
)
for name, path, says in (
    ("demo", "run", "Profile the embedded environment: no Gym, no model needed."),
    ("run", "run", "Plan, collect and profile; again, to do only the rest."),
    ("materialize", "files", "Write the plan: one line per rollout to collect."),
    ("collect", "collect", "Collect what a plan still owes."),
    ("aggregate", "collect", "Ask the servers for their own metrics again."),
    ("merge", "files", "Put an output's shards together."),
    ("profile", "files", "Profile collected rollouts, as Gym does."),
    ("inspect", "files", "Show what an output holds."),
    ("compare", "comparison", "Judge a candidate's rewards against a baseline's."),
    ("export", "exporting", "Log a profile to Weights & Biases or MLflow."),
    ("select", "selection", "Keep the task rows that can teach, by their pass rate."),
    ("report", "report", "Write a page that shows what the rewards say."),
    ("deploy", "deploy", "Register deployments and automations in Prefect."),
    ("worker", "deploy", "Run what is deployed and due, until stopped."),
):
    app.command(f"reward_profiling.cli.commands.{path}:{name}", name=name, help=says)


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are told, not traced."""
    try:
        return int(app(arguments) or ExitCode.WHOLE)
    except CycloptsError as error:
        cause = error.__cause__
        faults = option_faults(cause) if isinstance(cause, ValidationError) else None
        complain(faults or str(error))
    except ValidationError as error:
        complain(option_faults(error))
    except (RewardProfilingError, OSError) as error:
        complain(words_of(error))
        return code_of(error)
    except KeyboardInterrupt:
        complain(STOPPED)
        return ExitCode.INTERRUPTED
    return ExitCode.REFUSED
