"""Values: frozen dataclasses that hold options and check themselves when made.

The string under each field documents it everywhere: in Prefect's form, in the command
line's help and in the source. Its type and bounds decide what it may hold, so the
command line, the library and the form refuse the same values with the same message.
Pydantic builds the form, but is not imported here: that would take longer than most
commands on files.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Self, get_type_hints

from annotated_types import Gt, MinLen

from reward_profiling.errors import Fault, OptionsError
from reward_profiling.fitting import ReadAs, UnfitError, fitted
from reward_profiling.numerics.durations import seconds_from

JsonObject = dict[str, Any]
Seconds = Annotated[float, Gt(0), ReadAs(seconds_from)]
Name = Annotated[str, MinLen(1)]

_CAPITALS = {"url": "URL", "api": "API", "id": "ID"}


def _title(name: str, _: object) -> str:
    """Return a field's title in Prefect's form: its name as words."""
    words = [_CAPITALS.get(word, word) for word in name.split("_")]
    title = " ".join(words)
    return title[:1].upper() + title[1:]


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A value whose fields fit: immutable, closed, documented field by field.

    A field may be given as the text that the command line has of it.
    """

    __pydantic_config__: ClassVar[JsonObject] = {
        "extra": "forbid",
        "field_title_generator": _title,
        "hide_input_in_errors": True,  # an option given wrongly may be a key
        "ser_json_inf_nan": "null",
        "use_attribute_docstrings": True,
    }

    def __post_init__(self) -> None:
        """Read and check every field, then how they go together.

        Raises:
            OptionsError: fields do not fit; says which, and why.
            ConfigError: they do not go together.
        """
        faults: list[Fault] = []
        hints = _hints(type(self))  # type: ignore[arg-type] # a type can be hashed
        for name, hint in hints.items():
            given = getattr(self, name)
            try:
                object.__setattr__(self, name, fitted(hint, given))
            except OptionsError as error:
                faults += error.faults
            except UnfitError as error:
                shown = None if error.is_told else given
                faults.append(Fault(name, str(error), shown))
        if faults:
            raise OptionsError.of(faults)
        self.check()

    def check(self) -> None:
        """Refuse fields that do not go together.

        Raises:
            ConfigError: they do not; says why.
        """

    @classmethod
    def made(cls, given: Mapping[str, Any]) -> Self:
        """Return the value that the members of a JSON object make.

        Raises:
            OptionsError: members are missing, unknown, or do not fit.
            ConfigError: they do not go together.
        """
        known = {field.name: field for field in fields(cls)}
        faults = [
            Fault(name, " is not an option") for name in given if name not in known
        ]
        for name, field in known.items():
            is_needed = field.default is field.default_factory is MISSING
            if is_needed and name not in given:
                faults.append(Fault(name, " is missing"))
        if faults:
            raise OptionsError.of(faults)
        return cls(**given)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: Callable[[object], Any]
    ) -> object:
        """Let Pydantic describe the fields, and leave their checks to this class."""
        from pydantic_core import core_schema  # noqa: PLC0415 - only Pydantic asks

        return core_schema.no_info_wrap_validator_function(
            lambda given, _: fitted(cls, given), handler(source)
        )


@cache
def _hints(kind: type[Checked]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


def refused_when(reason: str, *cases: JsonObject) -> JsonObject:
    """Return JSON schema that refuses what holds in any case, and says the reason.

    Prefect's server knows only the schema: by it, it refuses before a run is made.
    """
    return {"not": {"$comment": reason, "anyOf": list(cases)}}


def given_one(name: str, **schema: object) -> JsonObject:
    """Return JSON schema of objects in which a member is given, and fits."""
    return {"required": [name], "properties": {name: schema}}
