package cli

import (
	"encoding/json"
	"fmt"
	"strings"
)

// report is what is read of an audit's report to print it for people.
type report struct {
	Counts   map[string]int64 `json:"counts"`
	Findings []struct {
		Kind        string `json:"kind"`
		Partition   int    `json:"partition"`
		Stream      string `json:"stream"`
		Version     int64  `json:"version"`
		LastVersion int64  `json:"lastVersion"`
		Position    int64  `json:"position"`
		Detail      string `json:"detail"`
	} `json:"findings"`
	More       int64    `json:"more"`
	NotChecked []string `json:"notChecked"`
}

// PrintReport prints the report of an audit, in JSON as handle.Report has it. ErrFailed when it found something.
func (a *App) PrintReport(raw json.RawMessage) error {
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return fmt.Errorf("read the report: %w", err)
	}
	if err := a.Print(raw, func() { a.report(&r) }); err != nil {
		return err
	}
	if len(r.Findings) > 0 || r.More > 0 {
		return ErrFailed
	}
	return nil
}

func (a *App) report(r *report) {
	a.Line("read %d commits, %d events, %d streams, %d seals",
		r.Counts["commits"], r.Counts["events"], r.Counts["streams"], r.Counts["seals"])
	if len(r.NotChecked) > 0 {
		a.Line("not checked: %s", strings.Join(r.NotChecked, ", "))
	}
	if len(r.Findings) == 0 {
		a.Line("all of it holds")
		return
	}
	rows := make([][]string, len(r.Findings))
	for i, f := range r.Findings {
		versions := fmt.Sprint(f.Version)
		if f.LastVersion > f.Version {
			versions += "–" + fmt.Sprint(f.LastVersion)
		}
		rows[i] = []string{f.Kind, f.Stream, versions, fmt.Sprint(f.Partition), fmt.Sprint(f.Position), f.Detail}
	}
	a.Rows([]string{"kind", "stream", "versions", "partition", "position", "detail"}, rows)
	if r.More > 0 {
		a.Line("and %d more", r.More)
	}
	a.Line("next: keep this folder as it is, and restore the last backup that verifies into another")
}
