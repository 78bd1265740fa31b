package main

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// keys that a terminal sends.
const (
	ctrlD   = "\x04"
	ctrlU   = "\x15"
	arrowUp = "\x1b[A"
)

// TestShellAtTerminal drives a run as a person does: with completion, history
// and a look at the state, also after its end.
func TestShellAtTerminal(t *testing.T) {
	x := atTerminal(t, []string{"NO_COLOR=1"}, "shell", "permission-input", "--delay-ms", "0")
	x.see("Type help for the commands")
	x.typeIn("prep\t\r")
	x.see(`accepted +run\.prepare`)
	x.typeIn("opne\r")
	x.see(`expected a command, got "opne"; did you mean "open"\?`)
	x.typeIn("open\r")
	x.see(`accepted +session\.open`)
	x.typeIn("start Fix it.\r")
	x.see(`runtime_request\.created +permission request_permission`)
	x.typeIn("answ\treq\t\t")
	x.see("allow  deny")
	x.typeIn("al\t\r")
	x.see("request_permission: allow")
	x.see(`runtime_request\.created +input request_input`)
	x.typeIn(arrowUp)
	x.see(`(?s)request_input.*prp> answer request_permission allow`)
	x.typeIn(ctrlU + "answer request_input It is late.\r")
	x.see("request_input: It is late")
	x.see("run succeeded, .* 20 events")
	x.typeIn("status\r")
	x.see(`end +run succeeded, turn completed: The harness ended well`)
	x.typeIn("drain\r")
	x.see("the run is over")
	x.typeIn(ctrlD)
	if got := x.exit(); got != exitOK {
		t.Errorf("exit status %d, want 0", got)
	}
}

// TestShellKeepsTheLine: what is being typed stands below an event that comes
// meanwhile, and is taken whole.
func TestShellKeepsTheLine(t *testing.T) {
	x := atTerminal(t, []string{"NO_COLOR=1"}, "shell", "happy-path", "--delay-ms", "20")
	x.see("prp> ")
	x.typeIn("prepare\ropen\r")
	x.see(`accepted +session\.open`)
	x.typeIn("start Fix it.\rsta")
	x.see(`turn\.completed[^\n]*\n[^\n]*prp> sta$|turn\.completed[^\n]*\n[^\n]*prp> sta\S*\x1b`)
	x.see("19 events")
	x.typeIn("tus\r")
	x.see(`prp> stat?u?s?`)
	x.see(`turn +turn_1 completed: Fix it\.`)
	if out := x.shown(); regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(out) {
		t.Errorf("NO_COLOR, and colours:\n%q", out)
	}
	x.typeIn("quit\r")
	if got := x.exit(); got != exitOK {
		t.Errorf("exit status %d, want 0", got)
	}
}

// TestShellCtrlC: it ends what is waited for, then has the meanings that it
// has in prp run; a turn that is over does not count.
func TestShellCtrlC(t *testing.T) {
	x := atTerminal(t, []string{"NO_COLOR=1"}, "shell", "interrupted", "--delay-ms", "0")
	x.see("prp> ")
	x.typeIn(ctrlC)
	x.see("no turn is active; Ctrl-C again cancels the run")
	x.typeIn("prepare\ropen\rstart Go on.\r")
	x.see("item_long_command|Run the long tests")
	x.typeIn("wait turn.failed\r")
	x.see(`prp> wait turn\.failed`)
	// Ctrl-C may come before the wait has begun: then it is the first of its
	// other meanings.
	x.typeIn(ctrlC)
	x.see("wait: given up|interrupting the turn")
	if strings.Contains(x.shown(), "given up") {
		x.typeIn(ctrlC)
	}
	x.see("interrupting the turn")
	x.see(`accepted +turn\.interrupt`)
	x.see("The run was cancelled.*The turn was interrupted by the controller")
	x.typeIn(ctrlD)
	if got := x.exit(); got != exitCancelled {
		t.Errorf("exit status %d, want 130", got)
	}
}

// TestShellGivesTheTerminalBack: whatever ends the shell, the terminal echoes
// and edits lines again.
func TestShellGivesTheTerminalBack(t *testing.T) {
	for name, end := range map[string]func(x *terminal){
		"Ctrl-D":  func(x *terminal) { x.typeIn(ctrlD) },
		"quit":    func(x *terminal) { x.typeIn("quit\r") },
		"SIGTERM": func(x *terminal) { x.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGQUIT": func(x *terminal) { x.cmd.Process.Signal(syscall.SIGQUIT) },
		"kill":    func(x *terminal) { x.typeIn(ctrlC + ctrlC + ctrlC + ctrlD) },
	} {
		t.Run(name, func(t *testing.T) {
			x := atTerminal(t, nil, "shell")
			before := x.mode()
			x.see("prp> ")
			if x.mode() == before {
				t.Error("the shell has not taken the terminal over")
			}
			end(x)
			if got := x.exit(); got != exitCancelled {
				t.Errorf("exit status %d, want 130", got)
			}
			if got := x.mode(); got != before {
				t.Errorf("the mode of the terminal is %o, was %o", got, before)
			}
		})
	}
}

// mode is what the terminal does with what is typed.
func (x *terminal) mode() uint32 {
	x.t.Helper()
	conn, err := x.master.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	var mode uint32
	var got error
	err = conn.Control(func(fd uintptr) {
		var state *unix.Termios
		if state, got = unix.IoctlGetTermios(int(fd), unix.TCGETS); got == nil {
			mode = state.Lflag
		}
	})
	if err != nil || got != nil {
		x.t.Fatal(err, got)
	}
	return mode
}

// TestZshCompletion types into a real zsh.
func TestZshCompletion(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not installed: its completion is not tried out")
	}
	cmd := exec.Command(zsh, "-f", "-i")
	cmd.Dir = completionDir(t)
	cmd.Env = []string{"TERM=dumb", "PATH=" + "/usr/bin:/bin", "HOME=" + cmd.Dir, "PS1=% "}
	x := seat(t, cmd)
	x.typeIn("autoload -Uz compinit; compinit -u -D; source zsh.completion; echo rea''dy\r")
	x.see("ready")
	for i, tt := range completionCases {
		if len(tt.want) != 1 {
			continue // a list, which zsh draws in its own way
		}
		// The line is a comment to the shell: only the editor looks at it.
		line := strings.Join(tt.words, " ")
		x.typeIn(line + "\t")
		x.see(regexp.QuoteMeta(strings.Join(tt.words[:len(tt.words)-1], " ") + " " + tt.want[0]))
		x.typeIn(ctrlU + "echo do''ne " + string(rune('a'+i)) + "\r")
		x.see("done " + string(rune('a'+i)))
	}
	x.typeIn("exit\r")
	x.exit()
}
