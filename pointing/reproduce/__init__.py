"""The paper's experiments, its numbers beside ours."""
