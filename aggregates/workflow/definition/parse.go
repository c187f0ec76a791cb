// Package definition reads workflow definitions and says everything that is wrong with one at once.
// It never runs anything and never guesses: what it does not know is refused with its place and the way out.
package definition

import (
	"bytes"
	"crypto/sha256"
	"time"
	"unicode/utf8"

	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/aggregates/kernel/schema"
	"github.com/sluice-platform/sluice/events"
)

const (
	// DelayMax is the longest delay between two attempts, and so the longest cap.
	DelayMax = 24 * time.Hour
	// BytesMax is the largest definition (DESIGN §8).
	BytesMax = 8 << 20
	// TasksMax is how many tasks a definition may have; all of them stand in one plan and one bitset.
	TasksMax = 10_000
	// FormulasMax is how many different expressions CEL compiles for one definition, some 25 µs and 10 KB each.
	FormulasMax = 20_000
	// SchemaBytesMax bounds the different schemas of one definition together: 100 KB take up to a second to compile.
	SchemaBytesMax = 2 << 20
	// NameMax is how many bytes a name may have.
	NameMax = 128
	// depthMax bounds nesting; schemas nest deepest.
	depthMax = 64
)

// Type is what a definition must know of a task type.
type Type struct {
	Pure  bool // decided in the append: transform
	Timer bool // waited for by the owner: sleep
	// Repeatable is the default for a mapping as it is written, expressions and all (nil for none); nil: true.
	Repeatable func(with []byte) bool
	With       []byte // JSON Schema of the mapping; expressions may stand for any part of it
}

// Types are the task types of a deployment, by name.
type Types map[string]Type

// Definition is one that has been parsed: what it says, with its places. Check finds what is wrong with it.
type Definition struct {
	Workflow string
	Input    []byte        // JSON Schema, or nil
	Output   []byte        // template, or nil
	Deadline time.Duration // 0: none
	Class    string
	Labels   []events.Label // sorted by name
	Tasks    []Task         // in the order of the source

	// Check leaves these behind, whole when it finds nothing wrong.
	InputSchema    *schema.Schema // nil: any
	OutputTemplate *expr.Template // nil: none

	root     *node
	names    []string // of the tasks, sorted
	problems problems
}

// Task is one task as the definition says it, defaults applied.
type Task struct {
	Name       string
	Type       string
	Class      string
	Needs      []string
	When, With []byte // templates, or nil
	Output     []byte // JSON Schema, or nil
	Retry      Retry
	Timeout    time.Duration
	Heartbeat  time.Duration // 0: none
	Repeatable *bool         // nil: the type's default
	Labels     []events.Label

	// Check leaves these behind. Tasks with the same text share one.
	WhenTemplate, WithTemplate *expr.Template // nil: absent
	OutputSchema               *schema.Schema // nil: any

	at    *node
	needs []*node // places of Needs
}

// Retry is how often and when a task is tried again.
type Retry struct {
	MaxAttempts int
	Base, Cap   time.Duration
	Factor      float64
	Jitter      bool
}

// DefaultRetry is case WF-10's.
var DefaultRetry = Retry{MaxAttempts: 5, Base: 2 * time.Second, Factor: 2, Cap: 5 * time.Minute, Jitter: true}

// DefaultTimeout is a task's where the definition names none.
const DefaultTimeout = 30 * time.Second

// DefaultClass is the queue of tasks whose definition names none.
const DefaultClass = "standard"

// Parse reads YAML, or JSON: a text that begins with an object and a quoted name. Problems mean that there is nothing
// to go on, and the definition is nil; otherwise Check tells all of them. Repeating it gives the same.
func Parse(raw []byte) (*Definition, []Problem) {
	d := &Definition{}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	switch i := bytes.IndexByte(raw, 0); {
	case len(raw) > BytesMax:
		d.problems.add(Problem{Code: "too_large", Detail: "a definition has at most " + itoa(BytesMax) +
			" bytes; this one has " + itoa(len(raw))})
	case i >= 0 || !utf8.Valid(raw):
		d.problems.add(Problem{Code: "not_text", Detail: "a definition is UTF-8 text without NUL"})
	case looksLikeJSON(raw):
		d.root = fromJSON(raw, &d.problems)
	default:
		d.root = fromYAML(raw, &d.problems)
	}
	if d.root != nil && d.root.kind != object {
		d.problems.at(d.root, "", "wrong_type", "a definition is an object, not "+d.root.kind.String())
		d.root = nil
	}
	if d.root == nil {
		return nil, d.problems.sorted()
	}
	(&taker{d}).definition(d.root)
	return d, nil
}

// looksLikeJSON tells JSON from YAML, which may begin with a brace too but hardly with one and a quoted name.
func looksLikeJSON(raw []byte) bool {
	const space = " \t\r\n"
	rest, brace := bytes.CutPrefix(bytes.TrimLeft(raw, space), []byte("{"))
	rest = bytes.TrimLeft(rest, space)
	return brace && len(rest) > 0 && (rest[0] == '"' || rest[0] == '}')
}

// Canonical is the content as JSON with sorted members: the same whatever the source looked like, and once more the
// same when it is parsed again. Numbers keep their digits, texts their characters.
func (d *Definition) Canonical() []byte { return d.root.appendJSON(nil) }

// Hash is the sha256 of the canonical content: what a version is known by.
func (d *Definition) Hash() events.Hash { return sha256.Sum256(d.Canonical()) }
