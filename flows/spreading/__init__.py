"""Where the shards of a run are collected: here, on a cluster, or by workers."""
