package platform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-platform/sluice/commands/handle"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/gateways/avro"
	"github.com/sluice-platform/sluice/gateways/blob"
	"github.com/sluice-platform/sluice/gateways/keys"
	"github.com/sluice-platform/sluice/gateways/sqlite"
	"github.com/sluice-platform/sluice/schemas"
)

// CheckResult says how a check of a data folder has ended.
type CheckResult string

// The results of a check.
const (
	CheckOK   CheckResult = "ok"
	CheckBad  CheckResult = "bad"
	CheckNote CheckResult = "note" // not as it usually is, and harmless
)

// Check is one thing that was looked at.
type Check struct {
	Name   string      `json:"name"`
	Result CheckResult `json:"result"`
	Detail string      `json:"detail"`
}

// Diagnosis is what Examine has found. Audit is nil when the log could not be read as far as that.
type Diagnosis struct {
	Data    string         `json:"data"`
	Healthy bool           `json:"healthy"`
	Checks  []Check        `json:"checks"`
	Next    []string       `json:"next"`
	Audit   *handle.Report `json:"audit"`
}

func (d *Diagnosis) add(name string, r CheckResult, format string, args ...any) {
	d.Checks = append(d.Checks, Check{name, r, fmt.Sprintf(format, args...)})
	d.Healthy = d.Healthy && r != CheckBad
}

// Examine looks at a data folder that no process has open: files, lock, keys, blobs, and the whole log as an audit
// does. It makes no folder and no log; opening a log that was left by a crash recovers it, as a start would.
func Examine(ctx context.Context, data string) Diagnosis {
	d := Diagnosis{Data: data, Healthy: true, Checks: []Check{}, Next: []string{}}
	if info, err := os.Stat(filepath.Join(data, "log.db")); err != nil || !info.Mode().IsRegular() {
		d.add("log", CheckBad, "%s holds no log", data)
		d.Next = append(d.Next, "name the folder that `sluice up --data` uses, or restore a backup into it")
		return d
	}
	store, err := sqlite.Open(data, sqlite.Options{})
	if err != nil {
		d.add("log", CheckBad, "%s", err)
		if errors.Is(err, sqlite.ErrInUse) {
			d.Next = append(d.Next, "a running server is asked by `sluice audit verify`")
		} else {
			d.Next = append(d.Next, "keep the folder as it is, and `sluice restore` a backup into another")
		}
		return d
	}
	d.look(ctx, store)
	if err := store.Close(); err != nil {
		d.add("close", CheckBad, "%s", err)
	}
	if d.Healthy {
		d.Next = append(d.Next, "sluice up --data "+data)
	} else {
		d.Next = append(d.Next, "keep the folder as it is, and `sluice restore` the last good backup into another")
	}
	return d
}

func (d *Diagnosis) look(ctx context.Context, store *sqlite.Store) {
	info, err := store.Log(ctx)
	if err != nil {
		d.add("log", CheckBad, "%s", err)
		return
	}
	d.add("log", CheckOK, "log %s, incarnation %d, %d partitions", info.ID, info.Incarnation, info.Partitions)
	if _, err := os.Stat(filepath.Join(d.Data, "views.db")); err != nil {
		d.add("views", CheckNote, "there is no file of views; the next start builds it from the log")
	} else {
		d.add("views", CheckOK, "can be thrown away and built anew at any time")
	}
	audit := handle.Audit{
		Log: store, Seals: store, Aggregates: allAggregates(),
	}
	if audit.Codec, err = avro.New(events.Registered(), schemas.Avro()); err != nil {
		d.add("schemas", CheckBad, "%s", err)
		return
	}
	switch ring, err := keys.Load(d.Data); {
	case err != nil:
		d.add("keys", CheckBad, "%s", err)
	case len(ring) == 0:
		d.add("keys", CheckNote, "there is no key that seals are trusted under, so seals are not checked")
	default:
		d.add("keys", CheckOK, "%d that seals are trusted under", len(ring))
		audit.Public = ring.Public
	}
	if blobs := d.blobs(); blobs != nil {
		defer blobs.Close() // nothing was written
		audit.Blobs = blobs
	}
	d.audit(ctx, audit)
}

func (d *Diagnosis) blobs() *blob.Folder {
	dir := filepath.Join(d.Data, "blobs")
	if _, err := os.Stat(dir); err != nil {
		d.add("blobs", CheckNote, "there is no folder of blobs")
		return nil
	}
	f, err := blob.Open(dir)
	if err != nil {
		d.add("blobs", CheckBad, "%s", err)
		return nil
	}
	d.add("blobs", CheckOK, "%s", dir)
	return f
}

func (d *Diagnosis) audit(ctx context.Context, audit handle.Audit) {
	r, err := handle.Verify(ctx, audit)
	if err != nil {
		d.add("audit", CheckBad, "it could not be finished: %s", err)
		return
	}
	d.Audit = &r
	if r.OK() {
		detail := fmt.Sprintf("%d commits, %d events, %d streams and %d seals hold", r.Counts.Commits, r.Counts.Events,
			r.Counts.Streams, r.Counts.Seals)
		if len(r.NotChecked) > 0 {
			detail += "; not checked: " + strings.Join(r.NotChecked, ", ")
		}
		d.add("audit", CheckOK, "%s", detail)
	}
	for _, f := range r.Findings {
		d.add("audit", CheckBad, "%s: stream %q version %d, partition %d position %d: %s", f.Kind, f.Stream, f.Version,
			f.Partition, f.Position, f.Detail)
	}
	if r.More > 0 {
		d.add("audit", CheckBad, "and %d more", r.More)
	}
}
