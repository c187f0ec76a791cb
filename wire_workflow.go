//sluice:owns wire_workflow.go examples/onboarding/

package main

import (
	"github.com/sluice-platform/sluice/deploy/platform"
	"github.com/sluice-platform/sluice/gateways/cli/workflow"
)

func init() {
	parts = append(parts, platform.Verbs, workflow.Verbs)
	views = append(views, "executions", "counts")
}
