package driver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-platform/sluice/gateways/sqlite/driver"
	"github.com/sluice-platform/sluice/gateways/sqlite/driver/drivertest"
)

func TestDefault(t *testing.T) {
	drivertest.Run(t, driver.Default, func(t *testing.T) string { return t.TempDir() })
}

func TestNcruces(t *testing.T) {
	drivertest.Run(t, drivertest.Ncruces, func(t *testing.T) string { return t.TempDir() })
}

func TestDisk(t *testing.T) {
	d := drivertest.NewDisk(1)
	t.Cleanup(d.Remove)
	drivertest.Run(t, d.Driver(), func(t *testing.T) string { return t.TempDir() })
}

func TestHardenChangesNoByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	want := bytes.Repeat([]byte("0123456789"), 250_000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := driver.Harden(path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes became %d: %v", len(want), len(got), err)
	}
}
