"""What all pages are made of: the kit of styles, scripts and templates that they share, and the page of a consistency study."""
