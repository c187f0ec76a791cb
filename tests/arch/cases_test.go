package arch

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// casesPath is the table of the known ways in which systems like ours have failed.
const casesPath = "docs/cases.md"

// casesMax holds the last number of each series.
var casesMax = map[string]int{"ES": 39, "WF": 28}

var (
	caseRow    = regexp.MustCompile(`^\| ([A-Z]{2}-\d\d) \| ([^|]+) \| ([^|]*) \| ([^|]*) \|$`)
	caseName   = regexp.MustCompile("^(Test(ES|WF)\\d\\d|[\"`](ES|WF)-\\d\\d)")
	caseID     = regexp.MustCompile(`(ES|WF)-?(\d\d)`)
	quotedPath = regexp.MustCompile("`([^`]+)`")
)

// TestCases keeps docs/cases.md true: a case is covered where a test or a subtest is named after it, and nowhere else.
func TestCases(t *testing.T) {
	table := func(rows ...string) string {
		var b strings.Builder
		for _, series := range []string{"ES", "WF"} {
			for n := 1; n <= casesMax[series]; n++ {
				id := fmt.Sprintf("%s-%02d", series, n)
				row := "| " + id + " | words | – | Backbone |"
				for _, r := range rows {
					if strings.HasPrefix(r, "| "+id) {
						row = r
					}
				}
				b.WriteString(row + "\n")
			}
		}
		return b.String()
	}
	suite := "package storetest\nimport \"testing\"\nfunc Run(t *testing.T) { t.Run(\"ES-06 one loser\", f) }"
	hold(t, cases, nil,
		example{
			"a case is covered where a test says its name",
			map[string]string{
				casesPath:               table("| ES-06 | words | `events/storetest` | – |", "| WF-17 | words | `a`, `b` | Backbone: Kafka |"),
				"events/storetest/s.go": suite,
				"a/a_test.go":           "package a\nfunc TestWF17RetryOfOneBranch() {}",
				"b/b_test.go":           "package b\nvar x = \"WF-17 the variant, and not WF17 of ES-1\"",
			},
			nil,
		},
		example{
			"a covered case of which no test knows is refused",
			map[string]string{
				casesPath:     table("| ES-06 | words | `events/storetest` | – |", "| WF-17 | words | `a` | – |"),
				"a/a.go":      "package a // WF-17",
				"a/a_test.go": "package a // WF-17 in a comment is no test",
			},
			[]string{"ES-06", "WF-17"},
		},
		example{
			"a test of which the table does not know is refused",
			map[string]string{casesPath: table(), "events/storetest/s.go": suite},
			[]string{"ES-06"},
		},
		example{
			"every id has one row that says something",
			map[string]string{
				casesPath: strings.Replace(table("| ES-02 | words | – | – |"), "| ES-39 ", "| ES-38 ", 1),
			},
			[]string{"ES-02", "ES-38", "ES-39"},
		},
		example{"there is a table", nil, []string{casesPath}},
	)
}

// cases compares the table with the names of tests.
func cases(tr *tree) (found []finding) {
	content, err := fs.ReadFile(tr, casesPath)
	if err != nil {
		return []finding{{casesPath, err.Error()}}
	}
	rows := map[string]int{}
	named := caseTests(tr)
	for line := range strings.Lines(string(content)) {
		m := caseRow.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		id, covered, waits := m[1], m[3], m[4]
		rows[id]++
		var listed []string
		for _, p := range quotedPath.FindAllStringSubmatch(covered, -1) {
			listed = append(listed, p[1])
			if !slices.Contains(named[id], p[1]) {
				found = append(found, finding{id, "is said to be covered in " + p[1] + ", where no test is named after it"})
			}
		}
		for _, dir := range named[id] {
			if !slices.Contains(listed, dir) {
				found = append(found, finding{id, "has a test in " + dir + ": add it to its row in " + casesPath})
			}
		}
		if len(listed) == 0 && strings.Trim(waits, " –") == "" {
			found = append(found, finding{id, "is neither covered nor waits for anything"})
		}
	}
	for _, series := range []string{"ES", "WF"} {
		for n := 1; n <= casesMax[series]; n++ {
			if id := fmt.Sprintf("%s-%02d", series, n); rows[id] != 1 {
				found = append(found, finding{id, fmt.Sprintf("has %d rows in %s", rows[id], casesPath)})
			}
		}
	}
	return found
}

// caseTests lists the folders with a test named after a case: a function TestES06…, a subtest "ES-06 …".
func caseTests(tr *tree) map[string][]string {
	named := map[string][]string{}
	for _, f := range tr.files {
		if f.isProduct() || under(f.path, "tests/arch") {
			continue
		}
		for _, text := range append(f.strings(), f.funcs()...) {
			if !caseName.MatchString(text) {
				continue
			}
			for _, m := range caseID.FindAllStringSubmatch(text, -1) {
				id := m[1] + "-" + m[2]
				if !slices.Contains(named[id], f.dir()) {
					named[id] = append(named[id], f.dir())
				}
			}
		}
	}
	return named
}
