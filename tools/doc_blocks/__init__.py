"""Generated blocks of the documentation: markers, what fills them in, and recorded results."""
