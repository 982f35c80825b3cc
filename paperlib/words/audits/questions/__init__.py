"""Questions of public texts on the privacy of models, and what an audit shows of each."""
