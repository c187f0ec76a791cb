package execution

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/sluice-platform/sluice/events"
)

// errSnapshot says that bytes are not a snapshot that Encode wrote.
var errSnapshot = errors.New("damaged snapshot of an execution")

// Encode appends the state in a form of its own: the same state gives the same bytes. A done task takes some five
// bytes,
// a ready or skipped one a bit.
func (s *State) Encode(b []byte) []byte {
	w := writer{b}
	w.byte(byte(s.status))
	w.text(s.workflow)
	w.int(s.version)
	w.b = append(w.b, s.definition[:]...)
	w.int(int64(s.tasks))
	w.text(s.class)
	w.int(int64(s.deadline))
	w.text(s.parent)
	w.int(s.input)
	w.int(int64(s.result))
	w.int(s.resultSize)
	w.int(int64(s.failure.Task))
	w.text(s.failure.Code)
	w.text(s.failure.Message)
	w.bits(s.skipped, s.tasks)
	w.bits(s.ready, s.tasks)
	w.ends(s)
	w.flights(s)
	return w.b
}

type writer struct{ b []byte }

func (w *writer) byte(v byte)   { w.b = append(w.b, v) }
func (w *writer) uint(v uint64) { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) int(v int64)   { w.b = binary.AppendVarint(w.b, v) }
func (w *writer) text(s string) { w.b = append(binary.AppendUvarint(w.b, uint64(len(s))), s...) }

func (w *writer) bits(set bitset, tasks int32) {
	for i := range (int(tasks) + 7) / 8 {
		w.byte(byte(set[i/8] >> (i % 8 * 8)))
	}
}

// ends are written by version: the tasks of a fan-out end in any order, and versions only rise. Which task it was
// takes two bytes then, and the version, with what is special of the attempt, mostly one.
func (w *writer) ends(s *State) {
	var order []int32
	s.done.each(func(t int32) { order = append(order, t) })
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(s.ends[a].version, s.ends[b].version) })
	w.uint(uint64(len(order)))
	last := events.Version(0)
	for _, t := range order {
		e := s.ends[t]
		how := firstAttempt
		switch e.attempt {
		case 1:
		case 0:
			how = noAttempt
		default:
			how = laterAttempt
		}
		w.uint(uint64(e.version-last)<<2 | uint64(how))
		w.uint(uint64(t))
		w.uint(uint64(e.size))
		if how == laterAttempt {
			w.int(int64(e.attempt))
		}
		last = e.version
	}
}

// The attempt that completed a task, in two bits.
const (
	firstAttempt = iota
	noAttempt
	laterAttempt
)

// What a flight has, one bit a field, so that what is not there takes no bytes.
const (
	hasHeld = 1 << (iota + 2) // the two bits below are the phase
	hasBegun
	hasAttempts
	hasAt
	hasWith
	hasFailure
)

func (w *writer) flights(s *State) {
	w.uint(uint64(len(s.flights)))
	last := int32(0)
	for _, t := range slices.Sorted(maps.Keys(s.flights)) {
		f := s.flights[t]
		w.uint(uint64(t - last))
		w.flight(&f)
		last = t
	}
}

func (w *writer) flight(f *flight) {
	has := byte(f.phase)
	for bit, is := range [...]bool{
		f.held, f.begun, f.attempt != 0 || f.spent != 0 || f.told != 0, f.at != 0, f.with != 0,
		f.failed != 0 || f.late != 0 || f.code != "",
	} {
		if is {
			has |= hasHeld << bit
		}
	}
	w.byte(has)
	if has&hasBegun != 0 {
		w.text(f.started.Worker)
		w.int(int64(f.started.SentAt))
		w.int(int64(f.started.StartedAt))
	}
	if has&hasAttempts != 0 {
		w.int(int64(f.attempt))
		w.int(int64(f.spent))
		w.uint(f.told)
	}
	if has&hasAt != 0 {
		w.int(int64(f.at))
	}
	if has&hasWith != 0 {
		w.int(int64(f.with))
	}
	if has&hasFailure != 0 {
		w.int(int64(f.failed))
		w.int(int64(f.late))
		w.text(f.code)
	}
}

// DecodeState reads what Encode wrote; any other bytes are an error.
func DecodeState(b []byte) (*State, error) {
	r := scanner{b: b}
	s := &State{}
	s.status = Status(r.byte())
	s.workflow = r.text()
	s.version = r.int()
	copy(s.definition[:], r.take(uint64(len(s.definition))))
	tasks := r.int()
	if tasks < 0 || tasks > tasksMax || int(s.status) >= len(Statuses) {
		return nil, errSnapshot
	}
	s.tasks = int32(tasks)
	s.class = r.text()
	s.deadline = events.Time(r.int())
	s.parent = r.text()
	s.input = r.int()
	s.result = events.Version(r.int())
	s.resultSize = r.int()
	s.failure.Task = r.int32()
	s.failure.Code = r.text()
	s.failure.Message = r.text()
	s.skipped, s.ready = r.bits(s.tasks), r.bits(s.tasks)
	if r.bad {
		return nil, errSnapshot
	}
	s.done = make(bitset, wordsOf(s.tasks))
	s.readEnds(&r)
	s.settled, s.pending = s.skipped.count()+s.done.count(), s.ready.count()
	s.readFlights(&r)
	// Whatever is possible in bytes and not in a state shows when it is written again.
	if r.bad || len(r.b) > 0 || !s.whole() || !bytes.Equal(s.Encode(make([]byte, 0, len(b))), b) {
		return nil, errSnapshot
	}
	return s, nil
}

// whole says that no task is in two states at once.
func (s *State) whole() bool {
	for i := range s.done {
		if s.done[i]&s.skipped[i]|(s.done[i]|s.skipped[i])&s.ready[i] != 0 {
			return false
		}
	}
	return s.status != None || s.tasks == 0
}

func (s *State) readEnds(r *scanner) {
	n := r.count()
	if n > 0 {
		s.ends = make([]end, s.tasks)
	}
	last := events.Version(0)
	for range n {
		v := r.uint()
		t := r.uint()
		e := end{version: last + events.Version(v>>2), attempt: 1, size: uint32(min(r.uint(), math.MaxUint32))}
		switch v & 3 {
		case firstAttempt:
		case noAttempt:
			e.attempt = 0
		case laterAttempt:
			e.attempt = r.int32()
		default:
			r.bad = true
		}
		if r.bad || t >= uint64(s.tasks) || e.version <= last {
			r.bad = true
			return
		}
		s.ends[t], last = e, e.version
		s.done.set(int32(t))
	}
}

func (s *State) readFlights(r *scanner) {
	t := uint64(0)
	for range r.count() {
		if t += r.uint(); r.bad || t >= uint64(s.tasks) || !s.ready.has(int32(t)) {
			r.bad = true
			return
		}
		s.put(int32(t), r.flight())
	}
}

func (r *scanner) flight() (f flight) {
	has := r.byte()
	f.phase, f.held, f.begun = phase(has&3), has&hasHeld != 0, has&hasBegun != 0
	if f.begun {
		f.started = Started{Worker: r.text(), SentAt: events.Time(r.int()), StartedAt: events.Time(r.int())}
	}
	if has&hasAttempts != 0 {
		f.attempt, f.spent, f.told = r.int32(), r.int32(), r.uint()
	}
	if has&hasAt != 0 {
		f.at = events.Time(r.int())
	}
	if has&hasWith != 0 {
		f.with = events.Version(r.int())
	}
	if has&hasFailure != 0 {
		f.failed, f.late, f.code = events.Version(r.int()), events.Version(r.int()), r.text()
	}
	return f
}

// scanner takes values off the front; after a short read bad is set and everything reads as zero.
type scanner struct {
	b   []byte
	bad bool
}

func (r *scanner) fail() { r.bad, r.b = true, nil }

func (r *scanner) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *scanner) byte() byte {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *scanner) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *scanner) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *scanner) int32() int32 {
	v := r.int()
	if v < math.MinInt32 || v > math.MaxInt32 {
		r.fail()
		return 0
	}
	return int32(v)
}

func (r *scanner) text() string { return string(r.take(r.uint())) }

// count reads how many entries follow; each takes at least two bytes.
func (r *scanner) count() int {
	n := r.uint()
	if n > uint64(len(r.b))/2 {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *scanner) bits(tasks int32) bitset {
	raw := r.take(uint64(tasks+7) / 8)
	if raw == nil {
		return nil
	}
	set := make(bitset, wordsOf(tasks))
	for i, v := range raw {
		set[i/8] |= uint64(v) << (i % 8 * 8)
	}
	return set
}
