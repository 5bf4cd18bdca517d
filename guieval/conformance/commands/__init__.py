"""Commands that check plug-ins, and write a start for one."""
