"""Resolution of a scenario into run specifications."""
