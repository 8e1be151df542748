"""The command line: words become plans, results go to standard output, prose and progress to standard error."""
