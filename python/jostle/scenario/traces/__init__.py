"""What others recorded of links: read, cut, told in numbers, converted and synthesised."""
