// Package schemas holds every contract of the platform as files, embedded in the binary.
// It never imports anything of ours, and a released file in it never changes: a change is a new file beside it.
package schemas

import (
	"embed"
	"io/fs"
)

//go:embed avro
var files embed.FS

// Avro is the tree of event schemas: <domain>/<event>.v<version>.avsc, one file per event type and schema version.
// Each stands alone (named types it needs are in it), as a registry's subject would.
func Avro() fs.FS {
	sub, err := fs.Sub(files, "avro")
	if err != nil {
		panic(err) // only a malformed constant path can fail
	}
	return sub
}
