"""Shards that are collected by several processes or machines, and merged."""
