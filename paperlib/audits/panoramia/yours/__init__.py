"""What an audit of your own data needs: batches, shares, the null check, files and a demonstration."""
