"""Numbers: moments in Gym's order, Student's t, intervals, figures in text."""
