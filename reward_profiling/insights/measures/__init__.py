"""What a section holds, one file each: its models, and how they are made."""
