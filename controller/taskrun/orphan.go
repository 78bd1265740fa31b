package taskrun

import (
	"prp/controller/unpack"
	"prp/protocol/orphan"
)

// runPrefix begins the name of a run's private folder. Behind it stands who made
// it, so that the folder of a worker that was killed can be told from that of
// one that is at work.
const runPrefix = "run"

// maxOrphans bounds the folders that are removed at a start: a run is waiting,
// and a folder can be large.
const maxOrphans = 8

// newRunDir makes a private folder of a run in dir.
func newRunDir(dir string) (string, error) { return orphan.MakeDir(dir, runPrefix) }

// removeOrphans removes the folders in dir whose worker is dead: nobody works on
// such a run again (remote.md rule 4).
func removeOrphans(dir string) { orphan.Remove(dir, runPrefix, maxOrphans, unpack.Remove) }
