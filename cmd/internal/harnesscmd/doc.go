// Package harnesscmd is the command line of prp-harness. It stands apart from
// its main because the program prp carries the same commands inside.
//
// # Duties of the caller
//
// [Main] is called once, by a main, with what follows the words that lead to
// it: prp-harness passes os.Args[1:], prp what comes after its own command.
// These arguments have to be the tail of os.Args, since a worker of the fake
// harness is started with the words before them. The status that Main returns
// is the exit status of the process.
//
// # Invariants
//
// Help goes to stdout with status 0, misuse to stderr with status 2. Nothing
// but messages of the harness is written to stdout otherwise.
package harnesscmd
