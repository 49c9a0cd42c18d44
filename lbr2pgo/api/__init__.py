"""Each task in one call, as `import lbr2pgo` offers them.

Options have the names that they have on the command line, and go the same way; what these calls
take apart, `lbr2pgo.count`, `lbr2pgo.Program` and their like offer step by step.
"""
