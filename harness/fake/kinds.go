package fake

import "slices"

// kind is a row of the table of step kinds.
type kind struct {
	name  string
	shape any // a zero struct, for schemas made by reflection
	parse func(o *object) Step
}

// kinds is filled by init because repeat and on_sigterm refer to it again.
var kinds []kind

func init() {
	kinds = []kind{
		{"delay", Delay{}, parseDelay},
		{"log", Log{}, parseLog},
		{"event", Event{}, parseEvent},
		{"request", Request{}, parseRequest},
		{"await_resolution", AwaitResolution{}, parseAwaitResolution},
		{"await_interrupt", AwaitInterrupt{}, parseAwaitInterrupt},
		{"await_command", AwaitCommand{}, parseAwaitCommand},
		{"result", Result{}, parseResult},
		{"terminal", Terminal{}, parseTerminal},
		{"spawn_worker", SpawnWorker{}, parseSpawnWorker},
		{"exit", Exit{}, parseExit},
		{"ready", Ready{}, parseReady},
		{"raw", Raw{}, parseRaw},
		{"stderr", Stderr{}, parseStderr},
		{"flood", Flood{}, parseFlood},
		{"repeat", Repeat{}, parseRepeat},
		{"close_stdin", CloseStdin{}, parseCloseStdin},
		{"close_stdout", CloseStdout{}, parseCloseStdout},
		{"ignore_sigterm", IgnoreSigterm{}, parseIgnoreSigterm},
		{"on_sigterm", OnSigterm{}, parseOnSigterm},
		{"stop_self", StopSelf{}, parseStopSelf},
		{"hang", Hang{}, parseHang},
		{"crash", Crash{}, parseCrash},
	}
}

// StepKinds lists the kinds of steps in a fixed order.
func StepKinds() []string {
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// StepTypes maps each kind of step to a zero value of its struct. The json
// tags are the members of a step, omitempty marks the optional ones, and the
// jsonschema tags hold the bounds. The caller owns the map.
func StepTypes() map[string]any {
	types := make(map[string]any, len(kinds))
	for _, k := range kinds {
		types[k.name] = k.shape
	}
	return types
}

func kindNamed(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}
