package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A check may take stepsFree steps and stepsPerByte for each byte of the document. A step is one schema looked at for
// one place of the document. Without this bound two references to "#" under one name make it the power of the depth:
// a document of 120 bytes took 4 s, and one of 800 would never end.
const (
	stepsFree    = 500_000
	stepsPerByte = 50
)

// meter counts the steps of one check. The checker has no way to be stopped but a panic, which ends in check; and it
// tells an extension nothing of which check it is in, so a schema is used for one check at a time.
type meter struct {
	busy sync.Mutex
	left int
}

// errSteps ends a check.
type errSteps struct{}

// check runs f with a budget for a document of so many bytes; ok is false when the budget is spent.
func (m *meter) check(bytes int, f func() error) (ok bool, err error) {
	m.busy.Lock()
	defer m.busy.Unlock()
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case errSteps:
			ok = false
		default:
			ok, err = true, fmt.Errorf("the checker failed: %v", r)
		}
	}()
	m.left = stepsFree + stepsPerByte*bytes
	return true, f()
}

// step is put into every part of a schema; its weight is how many others stand in it.
type step struct {
	m      *meter
	weight int
}

func (s step) Validate(*jsonschema.ValidatorContext, any) { s.m.spend(s.weight) }

func (m *meter) spend(n int) {
	if m.left -= n; m.left < 0 {
		panic(errSteps{})
	}
}

// PatternMax bounds a regular expression in bytes; instructionsPerStep is what matching costs beside the rest.
const (
	PatternMax          = 1 << 10
	instructionsPerStep = 20
)

// pattern is a regular expression whose matching costs steps: Go's take the product of text and pattern.
type pattern struct {
	*regexp.Regexp
	m    *meter
	size int
}

func (p pattern) MatchString(s string) bool {
	p.m.spend(1 + len(s)*p.size/instructionsPerStep)
	return p.Regexp.MatchString(s)
}

// compile is the checker's engine of regular expressions.
func (m *meter) compile(s string) (jsonschema.Regexp, error) {
	if len(s) > PatternMax {
		return nil, fmt.Errorf("a pattern has at most %d bytes, not %d", PatternMax, len(s))
	}
	r, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	size := len(s)
	if parsed, err := syntax.Parse(s, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			size = len(program.Inst)
		}
	}
	return pattern{r, m, size}, nil
}

// vocabulary puts a step into every schema that is an object. The keyword that it pretends to bring does not exist.
func (m *meter) vocabulary() *jsonschema.Vocabulary {
	anything := true
	return &jsonschema.Vocabulary{
		URL:    root + ":steps",
		Schema: &jsonschema.Schema{Bool: &anything},
		Compile: func(_ *jsonschema.CompilerContext, obj map[string]any) (jsonschema.SchemaExt, error) {
			return step{m, weigh(obj)}, nil
		},
	}
}

// weigh counts what stands directly in the keywords of a schema.
func weigh(obj map[string]any) int {
	n := 1
	for _, v := range obj {
		n += width(v)
	}
	return n
}

func width(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	default:
		return 0
	}
}
