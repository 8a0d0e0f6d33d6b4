"""What is live when: bytes at each slot of a schedule, for a run, an allocation, a memory space."""
