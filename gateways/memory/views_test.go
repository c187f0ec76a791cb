package memory_test

import (
	"testing"

	"github.com/sluice-platform/sluice/gateways/memory"
	"github.com/sluice-platform/sluice/projections"
	"github.com/sluice-platform/sluice/projections/viewstest"
)

func TestViews(t *testing.T) {
	viewstest.Run(t, viewstest.Harness{New: func(*testing.T) projections.Views { return memory.NewViews() }})
}
