"""The whole program against everything that goes wrong; docs/reliability.md is made from these tests' own descriptions."""
