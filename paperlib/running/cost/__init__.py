"""What a run would cost: measured on a few steps of the run itself."""
