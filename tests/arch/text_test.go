package arch

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The patterns are put together from pieces, so that this file does not match itself.
var (
	machinePath = regexp.MustCompile(`(^|[^\w./-])/(wo` + `rk|ro` + `ot|ho` + `me)/`)
	marker      = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`)
	binary      = []string{".png", ".ico", ".avro", ".db", ".gz", ".zip", ".woff2", ".sum"}
)

func TestText(t *testing.T) {
	hold(t, text, nil,
		example{
			"no path of somebody's machine",
			map[string]string{
				"docs/a.md":          "see /wo" + "rk/thing",
				"deploy/compose.yml": "volumes: [/ro" + "ot/data]",
				"events/a_test.go":   "package events\nconst dir = \"/ho" + "me/me\"",
				"docs/b.md":          "POST /v1/work/items, and https://x.example/work/",
			},
			[]string{"deploy/compose.yml", "docs/a.md", "events/a_test.go"},
		},
		example{
			"no left-over marker: an issue remembers better",
			map[string]string{"README.md": "TO" + "DO: write", "events/a.go": "package events // FIX" + "ME"},
			[]string{"README.md", "events/a.go"},
		},
		example{
			"what tools keep in hidden folders of their own is not ours, what CI runs is",
			map[string]string{".git/config": "/wo" + "rk/x", ".ci/run": "cd /wo" + "rk/x"},
			[]string{".ci/run"},
		},
	)
}

func text(tr *tree) (found []finding) {
	err := fs.WalkDir(tr, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && p != ".ci" && p != ".github" && hidden(p):
			return fs.SkipDir
		case !d.Type().IsRegular() || slices.Contains(binary, path.Ext(p)):
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Size() > 1<<20 {
			return err // a built binary or a recorded log; neither is tracked
		}
		content, err := fs.ReadFile(tr, p)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(content), "\n") {
			if hit := machinePath.FindString(line) + marker.FindString(line); hit != "" {
				found = append(found, finding{p, fmt.Sprintf("line %d has %q", i+1, hit)})
			}
		}
		return nil
	})
	if err != nil {
		found = append(found, finding{".", err.Error()})
	}
	return found
}
