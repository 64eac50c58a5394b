"""The fit of an endpoint's engine, model, draft and numbers to each other, and to their host."""
