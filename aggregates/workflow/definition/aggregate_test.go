package definition_test

import (
	"testing"

	"github.com/sluice-platform/sluice/aggregates/decidertest"
	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

func TestPublish(t *testing.T) {
	given := decidertest.For(definition.Decider)
	content := func(b byte) commands.PublishVersion {
		return commands.PublishVersion{Hash: events.Hash{b}, Size: 100 + int64(b), Tasks: int32(b)}
	}
	published := func(version int64, b byte) events.VersionPublished {
		return events.VersionPublished{Version: version, Hash: events.Hash{b}, Size: 100 + int64(b), Tasks: int32(b)}
	}
	t.Run("content that is new is the next version", func(t *testing.T) {
		s := given(t).When(content(1)).Then(published(1, 1)).When(content(2)).Then(published(2, 2)).State()
		if s.Latest() != 2 || s.Versions[1] != (definition.Version{Hash: events.Hash{2}, Size: 102, Tasks: 2}) {
			t.Errorf("%+v", s)
		}
		if s.Find(events.Hash{1}) != 1 || s.Find(events.Hash{2}) != 2 || s.Find(events.Hash{3}) != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("the same content again is the version that it already is, also when a later one has come", func(t *testing.T) {
		given(t, published(1, 1), published(2, 2)).When(content(1)).ThenNothing()
	})
	t.Run("a definition is of no owner's concern", func(t *testing.T) {
		s := given(t, published(1, 1)).State()
		if definition.Decider.Open(s) || definition.Decider.Due(s) != 0 {
			t.Error("it is open, or has a deadline")
		}
	})
	t.Run("a snapshot that was cut is refused", func(t *testing.T) {
		s := given(t, published(1, 1), published(2, 2)).State()
		b := definition.Decider.Encode(s, nil)
		for n := range b {
			got, err := definition.Decider.Decode(b[:n])
			if whole := n%(len(b)/2) == 0; (err == nil) != whole {
				t.Errorf("%d of %d bytes: %+v, %v", n, len(b), got, err)
			}
		}
	})
}
