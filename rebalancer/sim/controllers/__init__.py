"""The controllers of the embedded cluster: each looks at what is and moves it one step towards what is wanted.

They read the store directly, as if their caches were always fresh, and write through the registry's rules.
"""
