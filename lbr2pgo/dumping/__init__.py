"""Each stage of the road as lines of text, to see why a number is what it is.

One module a stage, each with `lines`. Names in the lines come from files as they are: whoever
prints them makes them `printable`.
"""
