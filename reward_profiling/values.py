"""The base of models that are computed here and only read by people."""

from pydantic import ConfigDict

from reward_profiling.options import Frozen


class Computed(Frozen):
    """A value that nobody sets: no form and no help shows its fields.

    So their documentation stays in the source, and a class is made ready when the first
    of its values is: a run asks its first rollout before it has anything to say.
    """

    model_config = ConfigDict(use_attribute_docstrings=False, defer_build=True)
