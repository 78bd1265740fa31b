package bridge

import "time"

// aged gives a time that was read from a file the monotonic clock of now, which
// time.Now has and a file cannot hold: from here on its age grows with the time
// that passes, whatever the wall clock is set to (remote.md rule 9). A time that
// is still to come is one that was written before the clock was set back; its
// age begins now.
func aged(at, now time.Time) time.Time { return now.Add(min(at.Sub(now), 0)) }
