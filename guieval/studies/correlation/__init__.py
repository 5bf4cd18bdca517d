"""How metrics go together over models: correlation, and which metric predicts success best."""
