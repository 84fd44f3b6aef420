"""Options in groups: how help shows them, and how values get them.

The fields of a value are options of a command, each under its own name. The command
line passes their texts on unchanged: the value parses them and refuses bad ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, get_origin

from cyclopts import ArgumentCollection, Group, Parameter, Token

PLAN = Group.create_ordered("Input and plan")
SERVERS = Group.create_ordered("Servers")
COLLECTION = Group.create_ordered(
    "Collection", help="Durations are seconds, or text such as 90s, 15m or 4:00:00."
)
ADAPTIVE = Group.create_ordered("Adaptive repeats")
SPREADING = Group.create_ordered("Spreading over machines")
METRICS = Group.create_ordered("The servers' own metrics")
FILES = Group.create_ordered("Files")
PROFILE = Group.create_ordered("Profile")
SELECTION = Group.create_ordered("Selection")
COMPARISON = Group.create_ordered("Comparison")
BASELINE = Group.create_ordered("Baseline")


def fields_of(group: Group) -> Parameter:
    """Say of a parameter that the fields of its value are options of a group."""
    return Parameter(name="*", group=group, converter=_as_given)


def leave_checks_to_values(
    _app: object, _commands: object, arguments: ArgumentCollection
) -> None:
    """Keep cyclopts from validating with Pydantic, if something has imported it.

    Values check themselves, with the same messages everywhere.
    """
    for argument in arguments:
        argument.field_info.annotation = Any


def _as_given(
    hint: Any,  # noqa: ANN401 - a type of any kind
    tokens: Sequence[Token] | Mapping[str, Sequence[Token]],
) -> object:
    if isinstance(tokens, Mapping):  # --agent-map.NAME AGENT
        return {name: _as_given(str, given) for name, given in tokens.items()}
    texts = [token.value for token in tokens]
    return texts if get_origin(hint) in (list, tuple) else texts[0]
