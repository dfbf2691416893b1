"""A KV-cache offload hierarchy whose lifetimes are a lifegraph: see README.md beside this file."""
