"""How a forward pass computes: which kernels, in what order of rows, and what a pass costs here."""
