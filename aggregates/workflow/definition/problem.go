package definition

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong, where, and what to do about it.
type Problem struct {
	Code         string
	Pointer      string // RFC 6901, into the definition
	Line, Column int    // from 1, columns in characters; 0 when there is no such place
	Detail       string
}

const (
	// ProblemsMax is how many problems are listed; a text that is no definition at all has one a line.
	ProblemsMax = 200
	// problemsKept bounds how many are found before they are put in order; the rest is only counted.
	problemsKept = 2_000
)

// problems collects them.
type problems struct {
	list []Problem
	more int
}

func (ps *problems) add(p Problem) {
	if len(ps.list) < problemsKept {
		ps.list = append(ps.list, p)
	} else {
		ps.more++
	}
}

// full says that looking further tells nothing that anybody will read.
func (ps *problems) full() bool { return ps.more > 0 }

// at adds a problem of a node. What could not be read has been told already.
func (ps *problems) at(n *node, pointer, code, detail string) {
	if n.kind == broken {
		return
	}
	ps.add(Problem{Code: code, Pointer: pointer, Line: n.line, Column: n.column, Detail: detail})
}

// sorted lists the problems by place.
func (ps *problems) sorted() []Problem {
	list := slices.Clone(ps.list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Pointer, b.Pointer))
	})
	more := ps.more
	if len(list) > ProblemsMax {
		more += len(list) - ProblemsMax
		list = list[:ProblemsMax]
	}
	if more > 0 {
		list = append(list, Problem{Code: "too_many", Detail: itoa(more) + " or more are not listed; mend these first"})
	}
	return list
}

func itoa(n int) string { return strconv.Itoa(n) }

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// escape writes a name as a part of a JSON pointer.
func escape(name string) string { return escaper.Replace(name) }
