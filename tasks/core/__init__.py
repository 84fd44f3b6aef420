"""Pure rules: functions of values, without Prefect, HTTP, files or a clock."""
