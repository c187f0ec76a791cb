package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Format is how an answer is printed.
type Format string

// The formats.
const (
	Table Format = "table" // for people; may change
	JSON  Format = "json"  // for programs; what is in it stays
	YAML  Format = "yaml"  // the same as JSON
)

// Set takes the flag's text.
func (f *Format) Set(s string) error {
	switch g := Format(s); g {
	case Table, JSON, YAML:
		*f = g
		return nil
	default:
		return fmt.Errorf("there is no form %q; there are table, json and yaml", s)
	}
}

func (f *Format) String() string { return string(*f) }

// Type names the flag's values in help.
func (f *Format) Type() string { return "table|json|yaml" }

// Print prints v as JSON or YAML, or has people call what prints it for people.
func (a *App) Print(v any, people func()) error {
	if a.Output == Table {
		people()
		return nil
	}
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	if a.Output == YAML {
		if raw, err = toYAML(raw); err != nil {
			return err
		}
	}
	_, err = a.Out.Write(raw)
	return err
}

// marshal keeps < > & as they are: what is printed is read by people and programs, not by browsers.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return b.Bytes(), nil
}

// Line prints one line.
func (a *App) Line(format string, args ...any) { fmt.Fprintf(a.Out, format+"\n", args...) }

// Rows prints a table without a frame, so that it can be cut and searched.
func (a *App) Rows(header []string, rows [][]string) {
	w := table.NewWriter()
	w.SetOutputMirror(a.Out)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	w.SetStyle(style)
	w.SuppressTrailingSpaces()
	w.AppendHeader(rowOf(header))
	for _, r := range rows {
		w.AppendRow(rowOf(r))
	}
	w.Render()
}

func rowOf(cells []string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = safe(c)
	}
	return r
}

// safe takes control characters out of a cell: names and messages come from users, and a terminal obeys them.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return ' '
		}
		return r
	}, s)
}

// Time prints a moment, or a dash.
func Time(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Compact prints JSON in one line, at most so many characters of it; a dash for none.
func Compact(raw json.RawMessage, most int) string {
	var b bytes.Buffer
	if len(raw) == 0 || json.Compact(&b, raw) != nil {
		return "-"
	}
	s := []rune(b.String())
	if len(s) > most {
		return string(s[:most-1]) + "…"
	}
	return string(s)
}
