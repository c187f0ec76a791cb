package http

import (
	_ "embed"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

//go:embed with.schema.json
var withSchema []byte

// Type says what a task of type http is. It is repeatable by default, whatever the method: every attempt sends the same
// Idempotency-Key. A definition says `repeatable: false` for a downstream that does not honour it.
var Type = definition.Type{With: withSchema}
