"""The tables of named protocols, a module for each kind of benchmark; a new protocol is one more row in one of them."""
