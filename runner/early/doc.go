// Package early does what has to be done before Go's own packages are ready, a
// millisecond or more before main begins.
//
//   - It keeps the limit of open files as whoever started this program had set it.
//     Go raises the soft limit when the package syscall is initialised, and gives
//     the old one back to the children that syscall.ForkExec starts; a child that is
//     forked in another way has to get it from here.
//   - It hides a guardian (package process): the harness runs already, and could
//     take a guardian over with ptrace(2), or end it, until main came to that.
//
// That this comes first is by the order of initialisation (Go specification,
// "Program initialization"): of the packages that are ready the first by import
// path comes next. This package imports nothing that imports syscall, and its path
// sorts before "syscall". A test holds that.
package early
