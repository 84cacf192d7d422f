"""The command line: parse, wire, print. One module for each group of commands."""
