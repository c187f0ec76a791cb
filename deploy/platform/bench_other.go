//go:build !linux

package platform

import (
	"os"
	"time"
)

// cpuTime is not known on this system.
func cpuTime() time.Duration { return 0 }

func syncData(f *os.File) error { return f.Sync() }
