"""The parts of a section, one module each: its schema and its computation."""
