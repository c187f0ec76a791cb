//go:build !windows

package blob

import "os"

// syncEntry flushes a file or a folder that was opened for reading.
func syncEntry(f *os.File) error { return f.Sync() }
