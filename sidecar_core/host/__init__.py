"""Who uses the models, and when: loading, queue, limits, monitoring, ZeroGPU."""
