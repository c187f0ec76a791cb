package workflow

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/sluice-platform/sluice/events"
)

// dataOf writes an event's fields under their names in the schema. A payload in place is its own JSON; one in a blob
// is named.
func dataOf(e events.Event) json.RawMessage {
	out := map[string]any{}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("avro")
		if name == "" {
			continue
		}
		switch f := v.Field(i).Interface().(type) {
		case events.Payload:
			if text := payload(f); text != nil {
				out[name] = text
			}
		case events.Time:
			if f != 0 {
				out[name] = f.Std()
			}
		case events.Hash:
			out[name] = f.String()
		default:
			out[name] = f
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{"unreadable":true}`)
	}
	return b
}

func payload(p events.Payload) any {
	if name, ok := p.Name(); ok {
		return map[string]any{"blob": name.String(), "size": p.Size}
	}
	if p.Empty() || strings.TrimSpace(string(p.Inline)) == "" {
		return nil
	}
	return json.RawMessage(p.Inline)
}
