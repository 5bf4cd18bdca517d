"""Test material: a simulated phone, a scripted server, and the conformance suites of plug-ins."""
