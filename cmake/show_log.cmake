# cmake -DLOG=FILE -P: prints the log of a command that has failed, and fails.
file(READ ${LOG} text)
message(FATAL_ERROR "${text}")
