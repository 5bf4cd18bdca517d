"""A small stand-in of MobileGym's package: its interface, written from its documentation, on a page of two buttons."""
