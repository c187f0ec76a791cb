// Package decidertest reads a decider's rules as given / when / then.
// It never lets a rule pass that holds only once: whatever is decided, the same command again must yield nothing.
package decidertest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"testing"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Spec is a stream with a past, about to be asked something.
type Spec[S any, C commands.Command, E events.Event] struct {
	t       testing.TB
	d       aggregates.Decider[S, C, E]
	past    []E
	refs    refs
	version events.Version
}

// For names a decider once per test file: var given = decidertest.For(execution.Decider). The past is given as events,
// which have the versions 1, 2, …
func For[S any, C commands.Command, E events.Event](d aggregates.Decider[S, C, E],
) func(testing.TB, ...E) Spec[S, C, E] {
	return func(t testing.TB, past ...E) Spec[S, C, E] {
		return Spec[S, C, E]{t: t, d: d, refs: refs{}}.after(past)
	}
}

// refs answers for the log and the blobs.
type refs map[aggregates.Ref]any

func (r refs) Get(ref aggregates.Ref) (any, bool) {
	v, ok := r[ref]
	return v, ok
}

// With gives a reference that decisions may ask for, such as a plan. The payloads of past events are known by
// themselves.
func (s Spec[S, C, E]) With(r aggregates.Ref, value any) Spec[S, C, E] {
	all := refs{r: value}
	for known, v := range s.refs {
		all[known] = v
	}
	s.refs = all
	return s
}

// Blob gives a payload that is kept as a blob, and its name.
func (s Spec[S, C, E]) Blob(text []byte) (Spec[S, C, E], events.Payload) {
	name := events.Hash(sha256.Sum256(text))
	return s.With(aggregates.Ref{Kind: aggregates.RefBlob, Hash: name}, text), events.BlobPayload(name, len(text))
}

// after adds events as handle does: a payload too large for an event moves to a blob.
func (s Spec[S, C, E]) after(es []E) Spec[S, C, E] {
	past := append([]E(nil), s.past...)
	for _, e := range es {
		var kept events.Payload
		kept, e = s.keep(e)
		s.version++
		past = append(past, e)
		if text, ok := s.textOf(kept); ok {
			s = s.With(aggregates.Ref{Kind: aggregates.RefPayload, Version: s.version}, text)
		}
	}
	s.past = past
	return s
}

// keep returns what an event carries, and the event as the log has it.
func (s Spec[S, C, E]) keep(e E) (events.Payload, E) {
	carrier, ok := any(e).(events.Carrier)
	if !ok {
		return events.Payload{}, e
	}
	p := carrier.Carried()
	if len(p.Inline) <= events.InlineMax {
		return p, e
	}
	return p, carrier.Carry(events.BlobPayload(sha256.Sum256(p.Inline), len(p.Inline))).(E)
}

func (s Spec[S, C, E]) textOf(p events.Payload) ([]byte, bool) {
	name, isBlob := p.Name()
	if !isBlob {
		return p.Inline, !p.Empty()
	}
	v, ok := s.refs[aggregates.Ref{Kind: aggregates.RefBlob, Hash: name}]
	text, _ := v.([]byte)
	return text, ok
}

// State folds the past anew. Whoever asks owns it.
func (s Spec[S, C, E]) State() S {
	state := s.d.Initial()
	for i, e := range s.past {
		state = s.d.Evolve(state, e, events.Version(i+1))
	}
	return state
}

// Version is the stream's: the number of events so far.
func (s Spec[S, C, E]) Version() events.Version { return s.version }

// Outcome is what a command came to.
type Outcome[S any, C commands.Command, E events.Event] struct {
	s      Spec[S, C, E]
	c      C
	m      commands.Meta
	got    []E
	err    error
	rounds int
}

// When sends a command, with at most one Meta: At, Entropy, Actor and so on. The version is filled in.
func (s Spec[S, C, E]) When(c C, m ...commands.Meta) Outcome[S, C, E] {
	s.t.Helper()
	o := Outcome[S, C, E]{s: s, c: c}
	if len(m) > 0 {
		o.m = m[0]
	}
	state := s.State()
	before := s.d.Encode(state, nil)
	o.got, o.rounds, o.err = s.decide(state, c, o.m)
	if !bytes.Equal(s.d.Encode(state, nil), before) {
		s.t.Fatalf("deciding %T changed the state", c)
	}
	restored, err := s.d.Decode(before)
	if err != nil {
		s.t.Fatalf("the snapshot does not decode: %v", err)
	}
	if again, _, err := s.decide(restored, c, o.m); !equal(again, o.got) || (err == nil) != (o.err == nil) {
		s.t.Fatalf("on the state from its snapshot %T gives %+v, %v\nnot %+v, %v", c, again, err, o.got, o.err)
	}
	return o
}

// decide calls the decider as handle does: what it needs first, then what it says is missing.
func (s Spec[S, C, E]) decide(state S, c C, m commands.Meta) (es []E, rounds int, err error) {
	m.Version = s.version
	have := refs{}
	take := func(rs []aggregates.Ref) {
		s.t.Helper()
		for _, r := range rs {
			v, ok := s.refs[r]
			if !ok {
				s.t.Fatalf("%T asks for %+v, which the test does not give", c, r)
			}
			have[r] = v
		}
	}
	if s.d.Needs != nil {
		take(s.d.Needs(state, c, m))
	}
	for ; rounds <= aggregates.RefRoundsMax; rounds++ {
		es, err = s.d.Decide(state, c, m, have)
		var missing *aggregates.Missing
		if !errors.As(err, &missing) {
			return es, rounds, err
		}
		known := len(have)
		take(missing.Refs)
		if len(have) == known {
			s.t.Fatalf("%T asks again for what it has: %+v", c, missing.Refs)
		}
	}
	s.t.Fatalf("%T still asks after %d rounds", c, rounds)
	return nil, rounds, nil
}

// Then wants exactly these events, and nothing when the same command comes again. It returns what the stream is then.
func (o Outcome[S, C, E]) Then(want ...E) Spec[S, C, E] {
	o.s.t.Helper()
	next := o.then(want)
	again, _, err := next.decide(next.State(), o.c, o.m)
	if err != nil || len(again) != 0 {
		o.s.t.Fatalf("%T is not idempotent: again it gives %+v, %v", o.c, again, err)
	}
	return next
}

// ThenByKey is Then for an act of a person that may be meant twice: only the caller's key tells the repeat, and handle
// answers that.
func (o Outcome[S, C, E]) ThenByKey(want ...E) Spec[S, C, E] {
	o.s.t.Helper()
	return o.then(want)
}

func (o Outcome[S, C, E]) then(want []E) Spec[S, C, E] {
	o.s.t.Helper()
	if o.err != nil || !equal(o.got, want) {
		o.s.t.Fatalf("%T gives\n%s%v\nwant\n%s", o.c, lines(o.got), o.err, lines(want))
	}
	return o.s.after(o.got)
}

// ThenNothing wants it to be so already.
func (o Outcome[S, C, E]) ThenNothing() Spec[S, C, E] {
	o.s.t.Helper()
	return o.then(nil)
}

// ThenRefused wants a refusal with this code, and returns it.
func (o Outcome[S, C, E]) ThenRefused(code string) *commands.Error {
	o.s.t.Helper()
	var e *commands.Error
	if !errors.As(o.err, &e) || e.Code != code || len(o.got) != 0 {
		o.s.t.Fatalf("%T gives %+v, %v, want the refusal %s", o.c, o.got, o.err, code)
	}
	return e
}

// ThenAhead wants the state to be called behind the command.
func (o Outcome[S, C, E]) ThenAhead() {
	o.s.t.Helper()
	var e *aggregates.Ahead
	if !errors.As(o.err, &e) || len(o.got) != 0 {
		o.s.t.Fatalf("%T gives %+v, %v, want *aggregates.Ahead", o.c, o.got, o.err)
	}
}

// Rounds is how often references were asked for beyond Needs.
func (o Outcome[S, C, E]) Rounds() int { return o.rounds }

// Events are what was decided, for laws that look at more than their equality.
func (o Outcome[S, C, E]) Events() ([]E, error) { return o.got, o.err }

// equal compares by value; a slice without elements is as good as none.
func equal[E any](a, b []E) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(reflect.ValueOf(a[i]), reflect.ValueOf(b[i])) {
			return false
		}
	}
	return true
}

func same(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch {
	case !a.IsValid():
		return true
	case a.Kind() == reflect.Interface:
		return same(a.Elem(), b.Elem())
	case a.Kind() == reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case a.Kind() == reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}
