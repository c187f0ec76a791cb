package definition

import (
	"encoding/binary"
	"errors"

	"github.com/sluice-platform/sluice/aggregates"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// Category is the first part of a definition's stream name: definition/tenant/name.
const Category = "definition"

// Decider is the definition aggregate.
var Decider = aggregates.Decider[*State, commands.DefinitionCommand, events.DefinitionEvent]{
	Category: Category,
	Reducer:  1,
	Initial:  func() *State { return &State{} },
	Evolve:   evolve,
	Open:     func(*State) bool { return false },
	Due:      func(*State) events.Time { return 0 },
	Encode:   encode,
	Decode:   decode,
	Decide:   decide,
}

// State is one definition: its versions, the first at index 0.
type State struct{ Versions []Version }

// Version is one version that will never change.
type Version struct {
	Hash  events.Hash
	Size  int64
	Tasks int32
}

// Latest is the number of the last version; 0 for none.
func (s *State) Latest() int64 { return int64(len(s.Versions)) }

// Find returns the number of the version with this content; 0 for none.
func (s *State) Find(h events.Hash) int64 {
	for i, v := range s.Versions {
		if v.Hash == h {
			return int64(i) + 1
		}
	}
	return 0
}

func evolve(s *State, e events.DefinitionEvent, _ events.Version) *State {
	if e, ok := e.(events.VersionPublished); ok {
		s.Versions = append(s.Versions, Version{Hash: e.Hash, Size: e.Size, Tasks: e.Tasks})
	}
	return s
}

// decide publishes content that no version has yet: the same content is the version that it already is.
func decide(
	s *State, c commands.DefinitionCommand, _ commands.Meta, _ aggregates.Refs,
) ([]events.DefinitionEvent, error) {
	publish, ok := c.(commands.PublishVersion)
	if !ok || s.Find(publish.Hash) != 0 {
		return nil, nil
	}
	return []events.DefinitionEvent{events.VersionPublished{
		Version: s.Latest() + 1, Hash: publish.Hash, Size: publish.Size, Tasks: publish.Tasks,
	}}, nil
}

func encode(s *State, b []byte) []byte {
	for _, v := range s.Versions {
		b = append(b, v.Hash[:]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(v.Size))
		b = binary.LittleEndian.AppendUint32(b, uint32(v.Tasks))
	}
	return b
}

const versionBytes = 32 + 8 + 4

func decode(b []byte) (*State, error) {
	if len(b)%versionBytes != 0 {
		return nil, errors.New("damaged snapshot of a definition")
	}
	s := &State{}
	for ; len(b) > 0; b = b[versionBytes:] {
		v := Version{
			Hash: events.Hash(b[:32]), Size: int64(binary.LittleEndian.Uint64(b[32:])),
			Tasks: int32(binary.LittleEndian.Uint32(b[40:])),
		}
		s.Versions = append(s.Versions, v)
	}
	return s, nil
}
