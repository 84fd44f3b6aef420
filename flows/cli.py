"""The `reward-profiling` command."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tasks.core.errors import ConfigError, RecordError
from tasks.core.models import PlanOptions

app = App(name="reward-profiling", default_parameter=Parameter(json_dict=True, json_list=True, negative=()))


@app.command
def materialize(*, input: Path, output: Path, options: Annotated[PlanOptions, Parameter(name="*")] = PlanOptions()):
    from tasks.operations.materializing import check_input, materialize, checked_output
    print(materialize(check_input(input, options), checked_output(output)))


@app.command
def profile(*, inputs: Path, rollouts: Path, allow_partial: bool = False):
    from tasks.operations.profiling_run import write_profile
    w = write_profile(inputs, rollouts, allow_partial=allow_partial)
    return 3 if w.profile.completion.missing else 0


def main():
    try:
        r = app()
    except (ConfigError, RecordError) as e:
        print(e, file=sys.stderr)
        sys.exit(2)
