package transform

import (
	_ "embed"

	"github.com/sluice-platform/sluice/aggregates/workflow/definition"
)

//go:embed with.schema.json
var withSchema []byte

// Type says what a task of type transform is: decided in the append, unless what it reads is too large for that.
var Type = definition.Type{Pure: true, With: withSchema}
