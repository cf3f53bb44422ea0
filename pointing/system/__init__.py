"""Files, progress, tables, worker processes, torch.distributed."""
