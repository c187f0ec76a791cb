package main

import (
	"fmt"
	"io"
	"strings"
)

const module = "github.com/sluice-platform/sluice"

// event is one line of `go test -json`, as `go doc test2json` and `go help buildjson` describe it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build-output event
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string  // import path whose build-output events say why
}

// report counts tests and prints packages as they end.
type report struct {
	out                     io.Writer
	passed, failed, skipped int
	packages                map[string]*packageRun
	builds                  map[string]*strings.Builder // output of the compiler, by import path
}

// packageRun is what is known of a package whose tests run.
type packageRun struct {
	tests  int
	failed int
	cached bool
	output map[string]*strings.Builder // of tests that have not passed, by name; "" is the package itself
	order  []string                    // keys of output, as they came
}

func newReport(out io.Writer) *report {
	return &report{out: out, packages: map[string]*packageRun{}, builds: map[string]*strings.Builder{}}
}

// take folds one event. Subtests count as tests: a rule is a subtest here.
func (r *report) take(e event) {
	if e.Action == "build-output" {
		add(r.builds, e.ImportPath, e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &packageRun{output: map[string]*strings.Builder{}}
		r.packages[e.Package] = p
	}
	switch {
	case e.Action == "output":
		p.cached = p.cached || e.Test == "" && strings.Contains(e.Output, "\t(cached)")
		if add(p.output, e.Test, e.Output) {
			p.order = append(p.order, e.Test)
		}
	case e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
		r.end(e, p)
	case e.Action == "pass":
		r.passed++
		p.tests++
		delete(p.output, e.Test)
	case e.Action == "skip":
		r.skipped++
		p.tests++
		delete(p.output, e.Test)
	case e.Action == "fail":
		r.failed++
		p.failed++
		p.tests++
	}
}

func add(m map[string]*strings.Builder, key, text string) (isNew bool) {
	if m[key] == nil {
		m[key], isNew = &strings.Builder{}, true
	}
	m[key].WriteString(text)
	return isNew
}

// end prints a package's line, and all that its failures wrote.
func (r *report) end(e event, p *packageRun) {
	delete(r.packages, e.Package)
	if e.Action != "fail" {
		if p.tests > 0 {
			r.line("ok", e, p)
		}
		return
	}
	if p.failed == 0 {
		r.failed++ // it does not build, a TestMain failed, or the process died outside any test
	}
	r.line("FAIL", e, p)
	if b := r.builds[e.FailedBuild]; b != nil {
		fmt.Fprint(r.out, b)
	}
	for _, test := range p.order {
		if b := p.output[test]; b != nil {
			fmt.Fprint(r.out, b)
		}
	}
}

func (r *report) line(verdict string, e event, p *packageRun) {
	time := fmt.Sprintf("%.1fs", e.Elapsed)
	if p.cached {
		time = "cached"
	}
	fmt.Fprintf(r.out, "%-5s %8s %6d tests  %s\n", verdict, time, p.tests, shorten(e.Package))
}

func shorten(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }
