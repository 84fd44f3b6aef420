"""What a reply to `/run` becomes: a record, a failure, or nothing."""
