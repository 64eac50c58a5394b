"""A gate on the quality of answers: a canary's answers beside those of the release before."""
