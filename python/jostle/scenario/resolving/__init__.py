"""From what a scenario says to what a run is given."""
