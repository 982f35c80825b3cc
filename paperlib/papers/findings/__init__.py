"""What the papers do not say: findings of the reproduction, each with sentence, figure and numbers."""
