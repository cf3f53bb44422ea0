"""The loop over updates; state and resuming, optimisers, journal, validation."""
