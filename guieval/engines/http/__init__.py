"""Servers that speak the OpenAI chat-completions protocol: requests, answers, retries and routing."""
