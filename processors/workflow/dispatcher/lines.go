package dispatcher

import "github.com/sluice-platform/sluice/events"

// lineKey is what a slot is asked for.
type lineKey struct{ tenant, taskType string }

// lines are the tasks that wait, one line a tenant and type, served in turn: a tenant with many tasks does not stand
// before one with few, and a refused slot stops only those who ask for the same.
type lines struct {
	byKey   map[lineKey]*line
	turn    []*line // that have somebody waiting
	next    int
	waiting int
}

type line struct {
	key     lineKey
	tasks   []*flight
	head    int
	blocked events.Time // until then, or until a slot of the tenant is freed
	inTurn  bool
}

func newLines() lines { return lines{byKey: map[lineKey]*line{}} }

func (ls *lines) line(k lineKey) *line {
	l := ls.byKey[k]
	if l == nil {
		l = &line{key: k}
		ls.byKey[k] = l
	}
	if !l.inTurn {
		l.inTurn = true
		ls.turn = append(ls.turn, l)
	}
	return l
}

func (ls *lines) push(f *flight, k lineKey) {
	l := ls.line(k)
	l.tasks = append(l.tasks, f)
	ls.waiting++
}

// refuse puts a task back to the front and stops its line for a while.
func (ls *lines) refuse(f *flight, k lineKey, until events.Time) {
	ls.back(f, k)
	ls.line(k).blocked = until
}

// back puts a task that was popped back to the front.
func (ls *lines) back(f *flight, k lineKey) {
	l := ls.line(k)
	if l.head > 0 {
		l.head--
		l.tasks[l.head] = f
	} else {
		l.tasks = append([]*flight{f}, l.tasks...)
	}
	ls.waiting++
}

// pop takes the next task that may ask for its slot, or nil. Those closed meanwhile are left out; they were counted
// off when they were closed.
func (ls *lines) pop(now events.Time) *flight {
	for tried := 0; tried < len(ls.turn); {
		if ls.next >= len(ls.turn) {
			ls.next = 0
		}
		l := ls.turn[ls.next]
		if l.blocked > now {
			ls.next++
			tried++
			continue
		}
		for l.head < len(l.tasks) {
			f := l.tasks[l.head]
			l.tasks[l.head] = nil
			l.head++
			if f.phase == pending {
				ls.next++
				ls.waiting--
				return f
			}
		}
		l.tasks, l.head, l.inTurn = l.tasks[:0], 0, false
		ls.turn = append(ls.turn[:ls.next], ls.turn[ls.next+1:]...)
		if cap(l.tasks) > 1024 || len(ls.byKey) > 1024 {
			delete(ls.byKey, l.key)
		}
	}
	return nil
}

func (ls *lines) unblock(tenant string) {
	for _, l := range ls.turn {
		if l.key.tenant == tenant {
			l.blocked = 0
		}
	}
}

// blockedUntil is the earliest time at which a blocked line may ask again, 0 when none is blocked.
func (ls *lines) blockedUntil(now events.Time) (at events.Time) {
	for _, l := range ls.turn {
		if l.blocked > now && (at == 0 || l.blocked < at) {
			at = l.blocked
		}
	}
	return at
}
