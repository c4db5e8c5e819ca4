"""Speed and memory, asked here and never in a timed test. `make bench` runs all of them."""
