package test

import (
	_ "embed"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

//go:embed with.schema.json
var withSchema []byte

// Type says what a task of type test is: repeatable by default, since it has no effect.
var Type = definition.Type{With: withSchema}
