"""Pointers (the paper's z_t and l_t), encoded examples on disk, batches of them."""
