"""What the notebooks on Epsilon* show: figures and tables with their captions and descriptions in words."""
