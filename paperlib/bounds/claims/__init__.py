"""The test of a claim: a whole trade-off curve, such as an accountant's, as one hypothesis."""
