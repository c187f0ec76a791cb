package driver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// hardenStep is how much of a file is in memory at once.
const hardenStep = 1 << 20

// Harden is Driver.Harden for files of the operating system. The bytes do not change, so being cut short at any point
// does no harm.
func Harden(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("harden: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, hardenStep)
	for at := int64(0); ; {
		n, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("harden %s: %w", path, err)
		}
		if n == 0 {
			break
		}
		if _, err := f.WriteAt(buf[:n], at); err != nil {
			return fmt.Errorf("harden %s: %w", path, err)
		}
		at += int64(n)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("harden %s: %w", path, err)
	}
	return nil
}
