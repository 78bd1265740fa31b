// Flood is the other end of prp-runner's benchmark: a harness that costs
// little, and the relay that the runner is measured against.
//
//	flood lines SIZE COUNT        COUNT events of SIZE bytes a line, as fast as they are read
//	flood paced SIZE COUNT RATE   the same at RATE lines a second, with the time of the write in each
//	flood raw STREAM BYTES LINE   BYTES to stdout or stderr, in lines of LINE bytes, or without any end for 0;
//	                              then one event
//	flood quiet                   reads its stdin and writes nothing
//	flood relay                   copies stdin to stdout
//
// A harness says ready, waits for one line on stdin, does its work, and ends
// with the end of its stdin. It is for the benchmark alone: it checks nothing
// that it reads.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

// statusMisuse is the exit status of a wrong command line.
const statusMisuse = 2

// relayBuffer is what the relay reads at once, in bytes: a whole pipe.
const relayBuffer = 64 << 10

// modes are the words of the command line, with how many numbers follow.
var modes = map[string]struct {
	args int
	run  func(args []string) error
}{
	"lines": {2, lines},
	"paced": {3, paced},
	"raw":   {3, raw},
	"quiet": {0, func([]string) error { return nil }},
}

func main() {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "relay" {
		if err := relay(); err != nil {
			fmt.Fprintln(os.Stderr, "flood: relay:", err)
			os.Exit(1)
		}
		return
	}
	if len(args) == 0 || modes[args[0]].run == nil || modes[args[0]].args != len(args)-1 {
		fmt.Fprintf(os.Stderr, "flood: expected a mode and its numbers, got %q\n", args)
		os.Exit(statusMisuse)
	}
	if err := harness(modes[args[0]].run, args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "flood:", err)
		os.Exit(1)
	}
}

// relay is the physical limit: it does nothing but read and write.
func relay() error {
	buf := make([]byte, relayBuffer)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			if _, err := os.Stdout.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

const (
	head  = `{"schema":"paperclip.fake_harness.message.v1","messageSeq":`
	ready = head + `1,"type":"ready","payload":{"version":"1","driverKind":"fake","capabilities":["steer"]}}` + "\n"
)

// harness is the life of every mode but the relay.
func harness(work func([]string) error, args []string) error {
	if _, err := os.Stdout.WriteString(ready); err != nil {
		return err
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return nil // nobody wants the work
		}
		if n > 0 && buf[n-1] == '\n' {
			break
		}
	}
	if err := work(args); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// numbers reads what follows a mode.
func numbers(args []string) ([]int64, error) {
	out := make([]int64, len(args))
	for i, a := range args {
		n, err := strconv.ParseInt(a, 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("expected a number from 0, got %q", a)
		}
		out[i] = n
	}
	return out, nil
}

func lines(args []string) error {
	n, err := numbers(args)
	if err != nil {
		return err
	}
	size, left := int(n[0]), n[1]
	seq := int64(2) // ready was the first
	b := block{size: size}
	for left > 0 {
		took := b.number(seq, left)
		if _, err := os.Stdout.Write(b.bytes()); err != nil {
			return err
		}
		seq, left = seq+took, left-took
	}
	return nil
}

func paced(args []string) error {
	n, err := numbers(args)
	if err != nil {
		return err
	}
	size, count, pause := int(n[0]), n[1], time.Second/time.Duration(max(n[2], 1))
	start := time.Now()
	var line []byte
	for i := range count {
		time.Sleep(time.Until(start.Add(time.Duration(i) * pause)))
		line = appendLine(line[:0], i+2, time.Now().UnixNano(), size)
		if _, err := os.Stdout.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func raw(args []string) error {
	n, err := numbers(args[1:])
	if err != nil {
		return err
	}
	out := os.Stdout
	if args[0] == "stderr" {
		out = os.Stderr
	}
	buf := make([]byte, 0, blockBytes)
	for line := int(n[1]); len(buf) < blockBytes; {
		if line > 0 && len(buf)%line == line-1 {
			buf = append(buf, '\n')
			continue
		}
		buf = append(buf, 'x')
	}
	for left := n[0]; left > 0; left -= int64(len(buf)) {
		if _, err := out.Write(buf[:min(left, int64(len(buf)))]); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(appendLine(nil, 2, 0, 0))
	return err
}
