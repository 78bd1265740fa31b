package process

import (
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a job object with one leader. The leader's handle keeps its number
// from being given to another.
type job struct {
	handle windows.Handle
	leader windows.Handle
	pid    int
}

// newJob makes a job that is ended when its last handle is closed, also by the
// runner's death.
func newJob() (windows.Handle, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("CreateJobObject: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(h)
		return 0, fmt.Errorf("SetInformationJobObject: %w", err)
	}
	return h, nil
}

// startInJob creates the leader suspended, puts it into the job and lets it
// run: there is no moment in which it could start something outside.
func startInJob(path string, spec Spec, p *pipes) (*job, error) {
	h, err := newJob()
	if err != nil {
		return nil, err
	}
	info, err := createSuspended(path, spec, p)
	if err != nil {
		windows.CloseHandle(h)
		return nil, err
	}
	defer windows.CloseHandle(info.Thread)
	j := &job{handle: h, leader: info.Process, pid: int(info.ProcessId)}
	err = windows.AssignProcessToJobObject(h, info.Process)
	if err == nil {
		_, err = windows.ResumeThread(info.Thread)
	}
	if err != nil {
		windows.TerminateProcess(info.Process, killedCode)
		j.close()
		return nil, err
	}
	return j, nil
}

func createSuspended(path string, spec Spec, p *pipes) (*windows.ProcessInformation, error) {
	app, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	line, err := windows.UTF16PtrFromString(windows.ComposeCommandLine(spec.Argv))
	if err != nil {
		return nil, err
	}
	var dir *uint16
	if spec.Dir != "" {
		if dir, err = windows.UTF16PtrFromString(spec.Dir); err != nil {
			return nil, err
		}
	}
	// Only the three pipe ends are inherited, whatever else is inheritable.
	list, err := windows.NewProcThreadAttributeList(1)
	if err != nil {
		return nil, err
	}
	defer list.Delete()
	err = list.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
		unsafe.Pointer(&p.theirs[0]), unsafe.Sizeof(p.theirs))
	if err != nil {
		return nil, err
	}
	start := &windows.StartupInfoEx{ProcThreadAttributeList: list.List()}
	start.Cb = uint32(unsafe.Sizeof(*start))
	start.Flags = windows.STARTF_USESTDHANDLES
	start.StdInput, start.StdOutput, start.StdErr = p.theirs[0], p.theirs[1], p.theirs[2]
	const flags = windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP |
		windows.CREATE_UNICODE_ENVIRONMENT | windows.EXTENDED_STARTUPINFO_PRESENT
	info := new(windows.ProcessInformation)
	err = windows.CreateProcess(app, line, nil, nil, true, flags, environment(spec.Env), dir, &start.StartupInfo, info)
	if err != nil {
		return nil, err
	}
	return info, nil
}

// environment is the block that CreateProcess takes: each entry ended by a
// NUL, sorted by name, and one more NUL.
func environment(env []string) *uint16 {
	sorted := slices.Clone(env)
	slices.SortStableFunc(sorted, func(a, b string) int {
		return strings.Compare(strings.ToUpper(a), strings.ToUpper(b))
	})
	var block []uint16
	for _, e := range sorted {
		units, err := windows.UTF16FromString(e)
		if err == nil {
			block = append(block, units...)
		}
	}
	if len(block) == 0 {
		block = append(block, 0)
	}
	block = append(block, 0)
	return &block[0]
}

func (j *job) close() {
	windows.CloseHandle(j.handle)
	windows.CloseHandle(j.leader)
}

// awaitExit tells the leader's exit code.
func (j *job) awaitExit() <-chan Exit {
	done := make(chan Exit, 1)
	// The goroutine has a handle of its own: j's may be closed before the
	// leader is dead.
	var own windows.Handle
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, j.leader, self, &own, 0, false, windows.DUPLICATE_SAME_ACCESS); err != nil {
		return nil
	}
	go func() {
		defer windows.CloseHandle(own)
		if _, err := windows.WaitForSingleObject(own, windows.INFINITE); err != nil {
			return
		}
		var code uint32
		if err := windows.GetExitCodeProcess(own, &code); err == nil {
			done <- Exit{Code: int(code)}
		}
	}()
	return done
}

// ask is the nearest thing to SIGTERM: a console break for the leader's group.
// Without a console nothing is sent, and the end of stdin has to do.
func (j *job) ask() {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(j.pid))
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	userTime, kernelTime             int64
	periodUserTime, periodKernelTime int64
	pageFaults, total, active, ended uint32
}

// active counts the processes of the job that have not ended.
func (j *job) active() int {
	var a accounting
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	if err != nil {
		return 0
	}
	return int(a.active)
}

// survivorsMax bounds how many survivors are named.
const survivorsMax = 64

// survivors names what is left in the job.
func (j *job) survivors() []Survivor {
	var list struct {
		assigned, listed uint32
		ids              [survivorsMax]uintptr
	}
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	if err != nil && err != windows.ERROR_MORE_DATA {
		return nil
	}
	var left []Survivor
	for _, id := range list.ids[:min(list.listed, survivorsMax)] {
		left = append(left, Survivor{PID: int(id), Name: "unknown", State: "?"})
	}
	return left
}
