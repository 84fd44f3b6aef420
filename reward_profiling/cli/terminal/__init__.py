"""What a terminal shows: lines and tables of them, and bars while something runs."""
