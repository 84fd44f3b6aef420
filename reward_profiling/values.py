"""Values: the frozen models that every room's options and results are.

The string under each field is its documentation everywhere: in Prefect's form, in
the command line's help and in the source.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from reward_profiling.numerics.durations import seconds_from

JsonObject = dict[str, Any]
Seconds = Annotated[float, Field(gt=0), BeforeValidator(seconds_from)]
Name = Annotated[str, Field(min_length=1)]
_CAPITALS = {"url": "URL", "api": "API", "id": "ID"}


def _title(name: str, _: object) -> str:
    """Return a field's title in Prefect's form: its name as words."""
    words = [_CAPITALS.get(word, word) for word in name.split("_")]
    title = " ".join(words)
    return title[:1].upper() + title[1:]


class Frozen(BaseModel):
    """A value: immutable, closed, documented field by field."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        ser_json_inf_nan="null",
        hide_input_in_errors=True,  # an option given wrongly may be a key
        field_title_generator=_title,
    )


class Computed(Frozen):
    """A value that nobody sets: no form and no help shows its fields.

    So their documentation stays in the source, and a class is made ready when the first
    of its values is: a run asks its first rollout before it has anything to say.
    """

    model_config = ConfigDict(use_attribute_docstrings=False, defer_build=True)


def refused_when(reason: str, *cases: JsonObject) -> JsonObject:
    """Return JSON schema that refuses what holds in any case, and says the reason.

    Prefect's server knows only the schema: by it, it refuses before a run is made.
    """
    return {"not": {"$comment": reason, "anyOf": list(cases)}}


def given_one(name: str, **schema: object) -> JsonObject:
    """Return JSON schema of objects in which a member is given, and fits."""
    return {"required": [name], "properties": {name: schema}}
