package child

import "os"

func exitOf(state *os.ProcessState) Exit { return Exit{Status: state.ExitCode()} }

func interrupt(p *os.Process) error { return p.Kill() }

func terminate(p *os.Process) error { return p.Kill() }

// Mirror returns the exit status for this process; Windows has no signals.
func Mirror(e Exit) int { return e.Status }
