// Program run is the one way to test Sluice: it builds, vets and tests everything, and closes with the counts.
// It never hides a failure: whatever fails is printed in full, and no test at all is a failure too.
//
//	go run ./tests/run [-short] [-race] [-only REGEXP]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// A stage's budget is what it may take on two cores from an empty build cache, so that all of CI ends in 30 minutes.
const (
	buildBudget = 4 * time.Minute
	vetBudget   = 3 * time.Minute
	testBudget  = 18 * time.Minute
	// packageTimeMax bounds one package's tests; a test that hangs then prints its goroutines.
	packageTimeMax = 15 * time.Minute
)

type options struct {
	short, race bool
	only        *regexp.Regexp
}

// stage is one step of a run. The first that fails ends it.
type stage struct {
	name   string
	budget time.Duration
	run    func(context.Context, *report) error
}

func main() {
	opts, err := parse(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := newReport(os.Stdout)
	os.Exit(runAll(ctx, stages(opts), r))
}

func parse(args []string) (options, error) {
	fs := flag.NewFlagSet("tests/run", flag.ContinueOnError)
	short := fs.Bool("short", false, "leave the long versions out")
	race := fs.Bool("race", false, "with the race detector (needs a C compiler)")
	only := fs.String("only", "", "test only packages whose path in the tree matches this `regexp`")
	if err := fs.Parse(args); err != nil {
		return options{}, err
	}
	if fs.NArg() > 0 {
		return options{}, fmt.Errorf("unknown argument %q: packages are chosen by -only", fs.Arg(0))
	}
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return options{}, fmt.Errorf("-only: %w", err)
	}
	return options{*short, *race, pattern}, nil
}

func stages(opts options) []stage {
	return []stage{
		{"build", buildBudget, func(ctx context.Context, r *report) error { return goCommand(ctx, r, "build", "./...") }},
		{"vet", vetBudget, func(ctx context.Context, r *report) error { return goCommand(ctx, r, "vet", "./...") }},
		{"test", testBudget, func(ctx context.Context, r *report) error { return test(ctx, r, opts) }},
	}
}

// runAll runs the stages, prints what each took, and returns the exit code. The closing line is the last one.
func runAll(ctx context.Context, todo []stage, r *report) (exit int) {
	var took []string
	for _, s := range todo {
		began := time.Now()
		err := s.run(ctx, r)
		spent := time.Since(began)
		line := fmt.Sprintf("%-8s %8s of %s", s.name, spent.Round(100*time.Millisecond), s.budget)
		if spent > s.budget {
			line += "  OVER BUDGET"
		}
		took = append(took, line)
		if err != nil {
			fmt.Fprintf(r.out, "%s: %v\n", s.name, err)
			r.failed = max(r.failed, 1)
			break
		}
	}
	fmt.Fprintln(r.out)
	for _, line := range took {
		fmt.Fprintln(r.out, line)
	}
	if r.failed == 0 && r.passed == 0 {
		fmt.Fprintln(r.out, "no test ran")
		exit = 1
	}
	if r.failed > 0 {
		exit = 1
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
	return exit
}

// goCommand runs the go command with its output on ours.
func goCommand(ctx context.Context, r *report, args ...string) error {
	cmd := command(ctx, args...)
	cmd.Stdout, cmd.Stderr = r.out, r.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// command is interrupted, not killed, when ctx ends, so that tests can stop what they started.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// test runs the tests of the chosen packages and reports them as they end.
func test(ctx context.Context, r *report, opts options) error {
	packages, err := chosen(ctx, opts.only)
	if err != nil {
		return err
	}
	args := []string{"test", "-json", "-vet=off", "-timeout=" + packageTimeMax.String()}
	if opts.short {
		args = append(args, "-short")
	}
	if opts.race {
		args = append(args, "-race")
	}
	cmd := command(ctx, append(args, packages...)...)
	cmd.Stderr = r.out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	readErr := r.read(stdout)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return readErr
}

// read folds the lines of `go test -json` until the stream ends.
func (r *report) read(stream io.Reader) error {
	for dec := json.NewDecoder(stream); ; {
		var e event
		if err := dec.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			_, _ = io.Copy(io.Discard, stream) // let the writer end, so that its own error is heard
			return fmt.Errorf("read go test -json: %w", err)
		}
		r.take(e)
	}
}

// chosen lists the packages whose path below the module matches.
func chosen(ctx context.Context, only *regexp.Regexp) ([]string, error) {
	out, err := command(ctx, "list", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []string
	for p := range strings.FieldsSeq(string(out)) {
		if only.MatchString(shorten(p)) {
			packages = append(packages, p)
		}
	}
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package matches %q", only)
	}
	return packages, nil
}
