"""`jostle exec`: programs of the user on the hosts of a network, in virtual time."""
