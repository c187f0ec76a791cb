// Package sleep says what a task of type sleep is: a wait that the owner keeps in the log.
// It never has a handler: no worker is held while an execution sleeps.
package sleep

import (
	_ "embed"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

//go:embed with.schema.json
var withSchema []byte

// Type is waited for by the owner.
var Type = definition.Type{Timer: true, With: withSchema}
