package events

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChain(t *testing.T) {
	t.Run("the hash of a commit is for ever", func(t *testing.T) {
		const want = "512e10ccd5403e3ac2fb4e5212932a2ea9ce32fc59b9340d97df4cf6d5a759d9"
		if got := Chain(Hash{1}, "order/acme/1", 3, 2, []byte("envelope"), []byte("events")).String(); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("it differs when any part does, also when bytes move between parts", rapid.MakeCheck(func(t *rapid.T) {
		type parts struct {
			prev     Hash
			s        Stream
			first    Version
			n        int
			env, evs string
		}
		hash := func(p parts) Hash { return Chain(p.prev, p.s, p.first, p.n, []byte(p.env), []byte(p.evs)) }
		p := parts{
			prev: Hash{rapid.Byte().Draw(t, "prev")}, s: Stream(rapid.String().Draw(t, "stream")),
			first: Version(rapid.Int64().Draw(t, "first")), n: rapid.Int().Draw(t, "n"),
			env: rapid.StringN(1, 20, -1).Draw(t, "envelope"), evs: rapid.StringN(1, 20, -1).Draw(t, "events"),
		}
		all := map[Hash]int{hash(p): -1}
		for i, change := range []func(*parts){
			func(p *parts) { p.prev[31]++ },
			func(p *parts) { p.s += "x" },
			func(p *parts) { p.first++ },
			func(p *parts) { p.n++ },
			func(p *parts) { p.env += "x" },
			func(p *parts) { p.evs += "x" },
			func(p *parts) { p.env, p.evs = p.env+p.evs[:1], p.evs[1:] },
			func(p *parts) { p.env, p.evs = p.env[:len(p.env)-1], p.env[len(p.env)-1:]+p.evs },
			func(p *parts) { p.first, p.n = Version(p.n), int(p.first) },
			func(p *parts) { p.s, p.env = p.s+Stream(p.env[:1]), p.env[1:] },
		} {
			changed := p
			change(&changed)
			h := hash(changed)
			if other, twice := all[h]; twice && changed != p {
				t.Fatalf("changes %d and %d give one hash", i, other)
			}
			all[h] = i
		}
	}))
}

func TestSeals(t *testing.T) {
	c := Commit{
		Stream: "order/acme/1", Partition: 1, First: 1, N: 1, Position: 7, Command: ID{1}, Fence: 3, At: 9,
		Envelope: []byte("e"), Events: []byte("v"), Hash: Hash{5},
	}
	t.Run("the digest is for ever", func(t *testing.T) {
		const want = "bb7dad8eb2e5688dd98fa52c104ff4205b614bb1eae0a7cbfb928e32f298d921"
		if got := SealDigest(Hash{2}, &c).String(); got != want {
			t.Errorf("got %s", got)
		}
	})
	t.Run("the digest covers what the chain does not, and the chain", func(t *testing.T) {
		was := SealDigest(Hash{2}, &c)
		if SealDigest(Hash{3}, &c) == was {
			t.Error("not the digest before")
		}
		for part, change := range map[string]func(*Commit){
			"partition": func(c *Commit) { c.Partition++ },
			"position":  func(c *Commit) { c.Position++ },
			"fence":     func(c *Commit) { c.Fence++ },
			"command":   func(c *Commit) { c.Command[15]++ },
			"time":      func(c *Commit) { c.At++ },
			"hash":      func(c *Commit) { c.Hash[31]++ },
		} {
			changed := c
			change(&changed)
			if SealDigest(Hash{2}, &changed) == was {
				t.Errorf("not the %s", part)
			}
		}
	})
	t.Run("the signature covers every field of a seal, and the log", func(t *testing.T) {
		seal := Seal{Partition: 1, Incarnation: 2, From: 3, To: 4, Commits: 5, At: 6, Digest: Hash{7}, Key: Hash{8}}
		was := string(SealBytes(ID{1}, &seal))
		if string(SealBytes(ID{2}, &seal)) == was {
			t.Error("not the log's id")
		}
		for i := range reflect.TypeFor[Seal]().NumField() {
			changed := seal
			field := reflect.ValueOf(&changed).Elem().Field(i)
			switch name := reflect.TypeFor[Seal]().Field(i).Name; {
			case name == "Signature":
				continue
			case field.CanInt():
				field.SetInt(field.Int() + 1)
			default:
				field.Index(31).SetUint(1)
			}
			if string(SealBytes(ID{1}, &changed)) == was {
				t.Errorf("not %s", reflect.TypeFor[Seal]().Field(i).Name)
			}
		}
		const want = "736c75696365207365616c20310a" + "01000000000000000000000000000000" + "01000000" + "0200000000000000" +
			"0300000000000000" + "0400000000000000" + "0500000000000000" + "0600000000000000"
		if got := hex.EncodeToString([]byte(was)); !strings.HasPrefix(got, want+"07") || len(was) != 14+16+4+5*8+64 {
			t.Errorf("the bytes are for ever; got %s", got)
		}
	})
}
