"""Flows whose parameters are values that Pydantic knows how to put into JSON."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Flow
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from pydantic_core import to_jsonable_python

from reward_profiling.values import Checked

P = ParamSpec("P")
R = TypeVar("R")


class ModelFlow(Flow[P, R]):
    """Tells Prefect's server its parameters as Pydantic puts them into JSON.

    So does Prefect's own, but by FastAPI's encoder, which the process of a run needs
    for nothing else, and which takes some tenths of a second to import.
    """

    def serialize_parameters(
        self, parameters: dict[str, Any | PrefectFuture[Any] | State]
    ) -> dict[str, Any]:
        """Return the parameters as they are in JSON, by name."""
        told = {
            name: to_jsonable_python(value)
            for name, value in parameters.items()
            if isinstance(value, Checked)
        }
        if len(told) < len(parameters):
            return super().serialize_parameters(parameters)
        return told


def model_flow(
    *, name: str, flow_run_name: Callable[[], str] | None = None
) -> Callable[[Callable[P, R]], ModelFlow[P, R]]:
    """Make a flow of a function, as Prefect's own decorator does."""

    def decorate(function: Callable[P, R]) -> ModelFlow[P, R]:
        return ModelFlow(function, name=name, flow_run_name=flow_run_name)

    return decorate
