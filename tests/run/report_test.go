package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// tests makes a stage that reports recorded lines of `go test -json`.
func tests(lines ...string) stage {
	return stage{"test", time.Minute, func(_ context.Context, r *report) error {
		return r.read(strings.NewReader(strings.Join(lines, "\n")))
	}}
}

const (
	passing = `{"Action":"run","Package":"m/a","Test":"TestA"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"a quiet line\n"}
{"Action":"pass","Package":"m/a","Test":"TestA/one"}
{"Action":"pass","Package":"m/a","Test":"TestA"}
{"Action":"skip","Package":"m/a","Test":"TestB"}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t1.2s\n"}
{"Action":"pass","Package":"m/a","Elapsed":1.2}`
	failing = `{"Action":"output","Package":"m/b","Test":"TestC/sub","Output":"    c_test.go:1: want 1, got 2\n"}
{"Action":"fail","Package":"m/b","Test":"TestC/sub"}
{"Action":"fail","Package":"m/b","Test":"TestC"}
{"Action":"pass","Package":"m/b","Test":"TestD"}
{"Action":"fail","Package":"m/b","Elapsed":0.5}`
	noBuild = `{"Action":"build-output","ImportPath":"m/c [m/c.test]","Output":"c.go:3: undefined: x\n"}
{"Action":"build-fail","ImportPath":"m/c [m/c.test]"}
{"Action":"fail","Package":"m/c","Elapsed":0,"FailedBuild":"m/c [m/c.test]"}`
	leaking = `{"Action":"pass","Package":"m/d","Test":"TestE"}
{"Action":"output","Package":"m/d","Output":"goleak: found unexpected goroutines\n"}
{"Action":"fail","Package":"m/d","Elapsed":0.1}`
	untested = `{"Action":"skip","Package":"m/e","Elapsed":0}`
	cached   = `{"Action":"pass","Package":"m/f","Test":"TestF"}
{"Action":"output","Package":"m/f","Output":"ok  \tm/f\t(cached)\n"}
{"Action":"pass","Package":"m/f","Elapsed":0}`
)

func TestRun(t *testing.T) {
	broken := stage{"build", time.Minute, func(context.Context, *report) error { return errors.New("exit status 1") }}
	for _, c := range []struct {
		policy string
		stages []stage
		exit   int
		prints []string
		hides  []string
		last   string
	}{
		{
			"passing tests are counted, subtests too, and stay quiet",
			[]stage{tests(passing)},
			0,
			[]string{"ok        1.2s      3 tests  m/a", "of 1m0s"},
			[]string{"a quiet line"},
			"2 passed, 0 failed, 1 skipped",
		},
		{
			"a failure is printed in full and fails the run",
			[]stage{tests(passing, failing)},
			1,
			[]string{"FAIL", "c_test.go:1: want 1, got 2"},
			nil,
			"3 passed, 2 failed, 1 skipped",
		},
		{
			"a package that does not build is a failure with the compiler's words",
			[]stage{tests(passing, noBuild)},
			1,
			[]string{"c.go:3: undefined: x"},
			nil, "2 passed, 1 failed, 1 skipped",
		},
		{
			"a package that fails outside its tests is a failure",
			[]stage{tests(leaking)},
			1,
			[]string{"goleak: found"},
			nil, "1 passed, 1 failed, 0 skipped",
		},
		{
			"no test at all is a failure",
			[]stage{tests(untested)},
			1,
			[]string{"no test ran"},
			[]string{"m/e"},
			"0 passed, 0 failed, 0 skipped",
		},
		{
			"a stage that fails ends the run and is a failure",
			[]stage{broken, tests(passing)},
			1,
			[]string{"build: exit status 1"},
			[]string{"m/a"},
			"0 passed, 1 failed, 0 skipped",
		},
		{
			"a cached package says so",
			[]stage{tests(cached)},
			0,
			[]string{"cached      1 tests  m/f"},
			nil, "1 passed, 0 failed, 0 skipped",
		},
		{
			"a stage over its budget is shown",
			[]stage{{"slow", 0, tests(passing).run}},
			0,
			[]string{"OVER BUDGET"},
			nil, "2 passed, 0 failed, 1 skipped",
		},
		{
			"a stream that breaks off inside a line is a failure",
			[]stage{tests(passing, `{"Action":`)},
			1,
			[]string{"read go test -json"},
			nil, "2 passed, 1 failed, 1 skipped",
		},
	} {
		t.Run(c.policy, func(t *testing.T) {
			var out strings.Builder
			if exit := runAll(t.Context(), c.stages, newReport(&out)); exit != c.exit {
				t.Errorf("exit %d, want %d", exit, c.exit)
			}
			for _, text := range c.prints {
				if !strings.Contains(out.String(), text) {
					t.Errorf("does not print %q:\n%s", text, &out)
				}
			}
			for _, text := range c.hides {
				if strings.Contains(out.String(), text) {
					t.Errorf("prints %q:\n%s", text, &out)
				}
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; last != c.last {
				t.Errorf("closes with %q, want %q", last, c.last)
			}
		})
	}
}

func TestParse(t *testing.T) {
	t.Run("flags become options", func(t *testing.T) {
		got, err := parse([]string{"-short", "-race", "-only", "^events"})
		if err != nil || !got.short || !got.race || !got.only.MatchString("events/storetest") {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("a package as argument is refused, not ignored", func(t *testing.T) {
		if _, err := parse([]string{"./events"}); err == nil {
			t.Error("accepted")
		}
	})
	t.Run("a pattern that does not parse is refused", func(t *testing.T) {
		if _, err := parse([]string{"-only", "("}); err == nil {
			t.Error("accepted")
		}
	})
}

// TestGoTest runs the real go command on a small module, so that the recorded lines above stay like the true ones.
func TestGoTest(t *testing.T) {
	t.Chdir(t.TempDir())
	for p, text := range map[string]string{
		"go.mod":         "module m\n\ngo 1.26\n",
		"good/g_test.go": "package good\n\nimport \"testing\"\n\nfunc TestG(t *testing.T) { t.Run(\"sub\", func(*testing.T) {}) }\n",
		"bad/b_test.go":  "package bad\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) { t.Error(\"the reason\") }\n",
		"ugly/u_test.go": "package ugly\n\nvar _ = undefined\n",
	} {
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("counts and words come from every package", func(t *testing.T) {
		var out strings.Builder
		r := newReport(&out)
		if err := test(t.Context(), r, options{only: regexp.MustCompile("")}); err == nil {
			t.Error("no error")
		}
		if r.passed != 2 || r.failed != 2 || r.skipped != 0 {
			t.Errorf("%d passed, %d failed, %d skipped", r.passed, r.failed, r.skipped)
		}
		for _, text := range []string{"the reason", "undefined: undefined"} {
			if !strings.Contains(out.String(), text) {
				t.Errorf("does not print %q:\n%s", text, &out)
			}
		}
	})
	t.Run("only what was chosen runs", func(t *testing.T) {
		r := newReport(&strings.Builder{})
		if err := test(t.Context(), r, options{only: regexp.MustCompile("good$")}); err != nil || r.passed != 2 {
			t.Errorf("%d passed, %v", r.passed, err)
		}
	})
	t.Run("a pattern that chooses nothing is a failure", func(t *testing.T) {
		err := test(t.Context(), newReport(&strings.Builder{}), options{only: regexp.MustCompile("nowhere")})
		if err == nil || !strings.Contains(err.Error(), "no package matches") {
			t.Errorf("got %v", err)
		}
	})
}
