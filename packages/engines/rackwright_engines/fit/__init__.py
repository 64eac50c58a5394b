"""Whether an endpoint's engine, model, draft and numbers fit together, and fit its host."""
