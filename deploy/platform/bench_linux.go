//go:build linux

package platform

import (
	"os"
	"syscall"
	"time"
)

// cpuTime is what this process has spent so far, in user and system mode.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
