"""Reads the files that a plan's options name, for what they add to each row."""

from pathlib import Path

from reward_profiling.planning.additions.prompt_file import read_prompt
from reward_profiling.planning.additions.skill_folder import read_skills
from reward_profiling.planning.options import PlanOptions
from reward_profiling.planning.task_rows import Additions


def read_additions(options: PlanOptions) -> tuple[Additions, list[str]]:
    """Read the files that the options name.

    Returns:
        What they add to rows, and a warning for each part without effect.

    Raises:
        ConfigError: a file cannot be read, or is no template.
        DatasetError: skills that cannot be used, all of them named.
    """
    prompt, skills, warnings = None, None, []
    if options.prompt_config is not None:
        prompt, unknown = read_prompt(Path(options.prompt_config))
        if unknown:
            warnings.append(
                f"{options.prompt_config}: a prompt template has user and system, so"
                f" {', '.join(unknown)} has no effect"
            )
    if options.skills is not None:
        skills = read_skills(options.skills)
    return Additions(prompt, skills), warnings


def option_files(options: PlanOptions) -> list[Path]:
    """Return the files that the options name: the prompt, then skills by path."""
    files = [] if options.prompt_config is None else [Path(options.prompt_config)]
    if options.skills is not None:
        found = Path(options.skills).rglob("*")
        files += sorted(path for path in found if path.is_file())
    return files
