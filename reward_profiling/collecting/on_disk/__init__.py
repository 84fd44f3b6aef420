"""What a collection writes: records, failures, timings, summaries of shards."""
