"""PANORAMIA on what a user brings: known members against generated examples."""
