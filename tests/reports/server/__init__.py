"""``guieval view`` without a browser: who may ask, what is answered, and that nothing else is written."""
