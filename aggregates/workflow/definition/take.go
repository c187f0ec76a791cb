package definition

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-platform/sluice/aggregates/kernel/duration"
	"github.com/sluice-platform/sluice/events"
)

// taker takes values out of nodes and notes what is wrong with them.
type taker struct{ d *Definition }

func (t *taker) problem(n *node, pointer, code, detail string) {
	t.d.problems.at(n, pointer, code, detail)
}

// fields calls the taker of each member; a member that has none is unknown, or reserved.
func (t *taker) fields(n *node, pointer string, take map[string]func(n *node, pointer string)) {
	if n.kind != object {
		t.problem(n, pointer, "wrong_type", "this is an object with members, not "+n.kind.String())
		return
	}
	for i := range n.members {
		m := &n.members[i]
		at, place := pointer+"/"+escape(m.name), m.place()
		switch f := take[m.name]; {
		case f != nil:
			f(m.value, at)
		case reserved[m.name]:
			t.problem(place, at, "not_yet", m.name+" is reserved for a later release; remove it")
		default:
			t.problem(place, at, "unknown_field", "there is no such field here; known are "+known(take))
		}
	}
}

// reserved are the words of task forms that are to come.
var reserved = map[string]bool{"map": true, "call": true, "await": true, "compensate": true}

func known[V any](m map[string]V) string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (t *taker) string(n *node, pointer string) (string, bool) {
	if n.kind != text {
		t.problem(n, pointer, "wrong_type", "this is a text, not "+n.kind.String())
		return "", false
	}
	return n.text, true
}

func (t *taker) name(n *node, pointer string) string {
	s, ok := t.string(n, pointer)
	if ok && !goodName(s) {
		t.problem(n, pointer, "bad_name", nameRule)
	}
	return s
}

const nameRule = "a name is letters, digits, '.', '_' and '-', first a letter or digit, at most 128 bytes"

func goodName(s string) bool {
	if s == "" || len(s) > NameMax || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

func (t *taker) duration(into *time.Duration) func(*node, string) {
	return func(n *node, pointer string) {
		s, ok := t.string(n, pointer)
		if !ok {
			return
		}
		d, err := duration.Parse(s)
		switch {
		case err != nil:
			t.problem(n, pointer, "bad_duration", err.Error())
		case d <= 0:
			t.problem(n, pointer, "bad_duration", "this must be longer than 0; leave it out for the default")
		default:
			*into = d
		}
	}
}

func (t *taker) class(into *string) func(*node, string) {
	return func(n *node, pointer string) {
		s, ok := t.string(n, pointer)
		if ok && !slices.Contains(classes, s) {
			t.problem(n, pointer, "unknown_class", "the classes are "+strings.Join(classes, ", "))
			return
		}
		*into = s
	}
}

var classes = []string{"high", "standard", "bulk", "longrunning"}

// descriptionMax bounds what is for people only, in bytes.
const descriptionMax = 4 << 10

func (t *taker) description(n *node, pointer string) {
	if s, ok := t.string(n, pointer); ok && len(s) > descriptionMax {
		t.problem(n, pointer, "too_large", "a description has at most "+itoa(descriptionMax)+" bytes")
	}
}

func (t *taker) raw(into *[]byte) func(*node, string) {
	return func(n *node, _ string) { *into = n.appendJSON(nil) }
}

func (t *taker) labels(into *[]events.Label) func(*node, string) {
	return func(n *node, pointer string) {
		if n.kind != object {
			t.problem(n, pointer, "wrong_type", "labels are an object of texts, not "+n.kind.String())
			return
		}
		for i := range n.members {
			m := &n.members[i]
			at := pointer + "/" + escape(m.name)
			if !goodName(m.name) {
				t.problem(m.place(), at, "bad_name", nameRule)
			}
			value, ok := t.string(m.value, at)
			if ok && len(value) > labelMax {
				t.problem(m.value, at, "too_large", "a label's value has at most "+itoa(labelMax)+" bytes")
			}
			*into = append(*into, events.Label{Name: m.name, Value: value})
		}
		if len(n.members) > labelsMax {
			t.problem(n, pointer, "too_many", "there may be at most "+itoa(labelsMax)+" labels")
		}
		slices.SortFunc(*into, func(a, b events.Label) int { return cmp.Compare(a.Name, b.Name) })
	}
}

const (
	labelsMax = 32  // of one definition or task; they stand in an event and in a row of the list
	labelMax  = 255 // bytes of a label's value
)

// AttemptsMax bounds attempts: with the longest delay a hundred take months.
const AttemptsMax = 100

func (t *taker) retry(into *Retry) func(*node, string) {
	return func(n *node, pointer string) {
		t.fields(n, pointer, map[string]func(*node, string){
			"maxAttempts": func(n *node, at string) {
				k, err := strconv.Atoi(n.text)
				if n.kind != number || err != nil || k < 1 || k > AttemptsMax {
					t.problem(n, at, "bad_number", "this is a whole number from 1 to "+itoa(AttemptsMax)+", without quotes")
					return
				}
				into.MaxAttempts = k
			},
			"factor": func(n *node, at string) {
				f, err := strconv.ParseFloat(n.text, 64)
				if n.kind != number || err != nil || !(f >= 1) || math.IsInf(f, 0) {
					t.problem(n, at, "bad_number", "this is a number of at least 1, without quotes")
					return
				}
				into.Factor = f
			},
			"jitter": func(n *node, at string) { t.boolean(&into.Jitter)(n, at) },
			"base":   t.duration(&into.Base),
			"cap":    t.duration(&into.Cap),
		})
		t.delays(n, pointer, into)
	}
}

// delays checks what base and cap come to, defaults included.
func (t *taker) delays(n *node, pointer string, r *Retry) {
	field := "cap"
	if n.member(field) == nil {
		field = "base"
	}
	at := n.member(field)
	switch {
	case at == nil:
	case r.Cap > DelayMax:
		t.problem(at, pointer+"/"+field, "bad_duration", "the longest delay is "+duration.Format(DelayMax))
	case r.Cap < r.Base:
		t.problem(at, pointer+"/"+field, "bad_duration", "cap, "+duration.Format(r.Cap)+", is shorter than base, "+
			duration.Format(r.Base)+"; write a longer cap")
	}
}

func (t *taker) boolean(into *bool) func(*node, string) {
	return func(n *node, pointer string) {
		if n.kind != boolean {
			t.problem(n, pointer, "wrong_type", "this is true or false, not "+n.kind.String())
			return
		}
		*into = n.text == "true"
	}
}

// defaults are what the tasks of a definition have in common.
type defaults struct {
	retry     Retry
	timeout   time.Duration
	heartbeat time.Duration
	class     string
}

func (t *taker) definition(n *node) {
	d := t.d
	def := defaults{retry: DefaultRetry, timeout: DefaultTimeout}
	var tasks *node
	t.fields(n, "", map[string]func(*node, string){
		"workflow":    func(n *node, at string) { d.Workflow = t.name(n, at) },
		"description": t.description,
		"labels":      t.labels(&d.Labels),
		"class":       t.class(&d.Class),
		"input":       t.raw(&d.Input),
		"output":      t.raw(&d.Output),
		"deadline":    t.duration(&d.Deadline),
		"tasks":       func(n *node, _ string) { tasks = n },
		"defaults": func(n *node, at string) {
			t.fields(n, at, map[string]func(*node, string){
				"timeout": t.duration(&def.timeout), "heartbeat": t.duration(&def.heartbeat),
				"retry": t.retry(&def.retry), "class": t.class(&def.class),
			})
		},
	})
	if d.Workflow == "" && n.member("workflow") == nil {
		t.problem(n, "/workflow", "required", "name the workflow")
	}
	if d.Class == "" {
		d.Class = DefaultClass
	}
	if def.class == "" {
		def.class = d.Class
	}
	switch {
	case tasks == nil:
		t.problem(n, "/tasks", "required", "a workflow has at least one task")
	case tasks.kind != object:
		t.problem(tasks, "/tasks", "wrong_type", "tasks are an object by name, not "+tasks.kind.String())
	case len(tasks.members) == 0:
		t.problem(tasks, "/tasks", "required", "a workflow has at least one task")
	case len(tasks.members) > TasksMax:
		t.problem(tasks, "/tasks", "dag_too_large",
			"a workflow has at most "+itoa(TasksMax)+" tasks; this one has "+itoa(len(tasks.members)))
	default:
		d.Tasks = make([]Task, 0, len(tasks.members))
		for i := range tasks.members {
			t.task(&tasks.members[i], def)
		}
	}
}

func (t *taker) task(m *member, def defaults) {
	at := "/tasks/" + escape(m.name)
	if !goodName(m.name) {
		t.problem(m.place(), at, "bad_name", nameRule)
	}
	x := Task{
		Name: m.name, Class: def.class, Retry: def.retry, Timeout: def.timeout, Heartbeat: def.heartbeat,
		at: m.value,
	}
	var repeatable bool
	t.fields(m.value, at, map[string]func(*node, string){
		"type":        func(n *node, at string) { x.Type, _ = t.string(n, at) },
		"description": t.description,
		"class":       t.class(&x.Class),
		"labels":      t.labels(&x.Labels),
		"needs":       t.needs(&x),
		"when":        t.raw(&x.When),
		"with":        t.raw(&x.With),
		"output":      t.raw(&x.Output),
		"retry":       t.retry(&x.Retry),
		"timeout":     t.duration(&x.Timeout),
		"heartbeat":   t.duration(&x.Heartbeat),
		"repeatable": func(n *node, at string) {
			t.boolean(&repeatable)(n, at)
			x.Repeatable = &repeatable
		},
	})
	t.d.Tasks = append(t.d.Tasks, x)
}

func (t *taker) needs(x *Task) func(*node, string) {
	return func(n *node, pointer string) {
		if n.kind != array {
			t.problem(n, pointer, "wrong_type", "needs is a list of task names, not "+n.kind.String())
			return
		}
		for i, item := range n.items {
			if s, ok := t.string(item, pointer+"/"+itoa(i)); ok {
				x.Needs = append(x.Needs, s)
				x.needs = append(x.needs, item)
			}
		}
	}
}
