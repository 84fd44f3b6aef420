"""The prompt template that `--prompt-config` names: a YAML file."""

from dataclasses import fields
from pathlib import Path

from reward_profiling.errors import ConfigError, OptionsError
from reward_profiling.files.json_lines import open_to_read
from reward_profiling.files.yaml_text import parse_mapping
from reward_profiling.planning.additions.prompt_template import PromptTemplate


def read_prompt(path: Path) -> tuple[PromptTemplate, list[str]]:
    """Return the template, and the other names in its file, which have no effect.

    Raises:
        ConfigError: the file cannot be read, or is no template.
    """
    with open_to_read(path) as file:
        content = file.read()
    try:
        found = parse_mapping(content.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8: {error.reason}") from error
    names = {field.name for field in fields(PromptTemplate)}
    try:
        template = PromptTemplate.made({n: v for n, v in found.items() if n in names})
    except OptionsError as error:
        faults = str(error).replace("\n", "; ")
        raise ConfigError(
            f'{path} is not a prompt template; give it "user" and optionally "system",'
            f" both text: {faults}"
        ) from error
    return template, [name for name in found if name not in names]
