package sqlite

import (
	"errors"
	"fmt"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
)

// Sentinels of this adapter, beside those of the port. Each text that wraps one names the file and the way out.
var (
	// ErrInUse says that another process has the folder open.
	ErrInUse = errors.New("data folder is in use")
	// ErrDamaged says that a file is not what was written: restore a backup.
	ErrDamaged = errors.New("log is damaged")
	// ErrDiskFull says that there is no space. Nothing of the call was stored; the store works on once there is space.
	ErrDiskFull = errors.New("disk is full")
	// ErrOldCopy says that the database ends below what this folder has acknowledged: it is an older copy, or the disk
	// has lost what it had confirmed.
	ErrOldCopy = errors.New("log is older than what it has acknowledged")
	// ErrNewerSchema says that a newer Sluice has written the database.
	ErrNewerSchema = errors.New("log was written by a newer version of Sluice")
)

// fault wraps an error of the driver with the act that failed, and says what can be done where something can.
func (f files) fault(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrDamaged):
		return fmt.Errorf("%s: %w: %s: %w; restore a backup with `sluice restore`", act, ErrDamaged, f.log(), err)
	case errors.Is(err, driver.ErrFull):
		return fmt.Errorf("%s: %w: %s: %w; make space, nothing that was acknowledged is lost", act, ErrDiskFull, f.log(), err)
	default:
		return fmt.Errorf("%s: %s: %w", act, f.log(), err)
	}
}
