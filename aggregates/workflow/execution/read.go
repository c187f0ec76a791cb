package execution

import (
	"slices"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/aggregates/kernel/expr"
	"github.com/sluice-platform/sluice/events"
)

const (
	// pureInputMax is how many bytes a pure step may read; one that reads more runs as an ordinary task (DESIGN §4).
	pureInputMax = 256 << 10
	// readsMax is how many bytes any other mapping that is evaluated here may read: no worker can do it instead.
	readsMax = 64 << 20
)

// own is an output of this very decision, known under the version that it is going to have.
type own struct {
	task    int32
	version events.Version
	payload events.Payload
}

// outputs are those of this decision. A few are searched; many have an index.
type outputs struct {
	list  []own
	index map[int32]int
	first [1]own
}

const fewOutputs = 8

func (o *outputs) add(x own) {
	if o.list == nil {
		o.list = o.first[:0]
	}
	o.list = append(o.list, x)
	switch {
	case o.index != nil:
		o.index[x.task] = len(o.list) - 1
	case len(o.list) > fewOutputs:
		o.index = make(map[int32]int, 2*len(o.list))
		for i := range o.list {
			o.index[o.list[i].task] = i
		}
	}
}

func (o *outputs) get(t int32) *own {
	if o.index != nil {
		if i, ok := o.index[t]; ok {
			return &o.list[i]
		}
		return nil
	}
	for i := range o.list {
		if o.list[i].task == t {
			return &o.list[i]
		}
	}
	return nil
}

// scope gathers what a template reads; ok is false when some of it, or of what came before, must be loaded first.
func (d *draft) scope(template *expr.Template, refs []int32) (s expr.Scope, ok bool) {
	if template.Constant() {
		return s, len(d.missing) == 0
	}
	if template.UsesInput() {
		s.Input, _ = d.inputText()
	}
	for _, r := range refs {
		d.output(r)
	}
	if len(refs) > 0 {
		s.Output = func(name string) ([]byte, bool) {
			t, known := d.plan.Ordinal(name)
			if !known {
				return nil, false
			}
			return d.output(t)
		}
	}
	return s, len(d.missing) == 0
}

func (d *draft) inputText() ([]byte, bool) {
	switch {
	case d.s.input == 0:
		return []byte("null"), true
	case !d.input.Empty():
		return d.text(d.input)
	default:
		return d.payload(1)
	}
}

// output is a task's output; false for a task that has none: it was skipped, is a timer, or has not ended.
func (d *draft) output(t int32) ([]byte, bool) {
	if o := d.outputs.get(t); o != nil {
		return d.text(o.payload)
	}
	if v := d.s.OutputVersion(t); v != 0 {
		return d.payload(v)
	}
	return nil, false
}

// text is a payload's that no event carries yet.
func (d *draft) text(p events.Payload) ([]byte, bool) {
	if name, ok := p.Name(); ok {
		return d.get(aggregates.Ref{Kind: aggregates.RefBlob, Hash: name})
	}
	return p.Inline, true
}

// payload is what an event of the log carries.
func (d *draft) payload(v events.Version) ([]byte, bool) {
	return d.get(aggregates.Ref{Kind: aggregates.RefPayload, Version: v})
}

// get answers from what was loaded, and notes what was not.
func (d *draft) get(r aggregates.Ref) ([]byte, bool) {
	if value, ok := d.refs.Get(r); ok {
		text, ok := value.([]byte)
		return text, ok
	}
	if !d.isAsked(r) {
		d.missing = append(d.missing, r)
	}
	return nil, false
}

// isAsked remembers what was asked for; a few are searched.
func (d *draft) isAsked(r aggregates.Ref) bool {
	const few = 16
	if len(d.missing) < few {
		return slices.Contains(d.missing, r)
	}
	if d.asked == nil {
		d.asked = make(map[aggregates.Ref]bool, 2*few)
		for _, m := range d.missing {
			d.asked[m] = true
		}
	}
	was := d.asked[r]
	d.asked[r] = true
	return was
}

// reads is how many bytes a template reads.
func (d *draft) reads(template *expr.Template, refs []int32) (n int64) {
	if template != nil && template.UsesInput() {
		n += d.s.input
	}
	for _, r := range refs {
		if o := d.outputs.get(r); o != nil {
			n += o.payload.Size
		} else {
			n += int64(d.s.end(r).size)
		}
	}
	return n
}

// refVersions are the events whose outputs a step has read.
func (d *draft) refVersions(refs []int32) (vs []int64) {
	for _, r := range refs {
		if o := d.outputs.get(r); o != nil {
			vs = append(vs, int64(o.version))
		} else if v := d.s.OutputVersion(r); v != 0 {
			vs = append(vs, int64(v))
		}
	}
	return vs
}
