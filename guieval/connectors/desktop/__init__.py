"""A desktop of real applications on a virtual display, in a namespace of its own for each task."""
