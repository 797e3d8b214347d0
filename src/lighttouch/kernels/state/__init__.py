"""What a run carries from step to step: arrays and numbers."""
