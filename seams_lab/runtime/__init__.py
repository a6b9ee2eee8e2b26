"""The runtime: it starts the processes of a model, waits for their timers and keeps their state."""
