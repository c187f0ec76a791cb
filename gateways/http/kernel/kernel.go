// Package kernel serves what belongs to no domain: audit, backups, views.
// It changes nothing that a command would change.
package kernel

import (
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	edge "github.com/sluice-platform/sluice/gateways/http"
	"github.com/sluice-platform/sluice/projections"
)

// Engine is what the handlers need of the platform.
type Engine interface {
	// Verify holds the whole log to its promises.
	Verify(ctx context.Context) (handle.Report, error)
	// Backup makes a backup of that name beside the data and returns its folder.
	Backup(ctx context.Context, name string) (folder string, err error)
	// Rebuild builds a view anew and swaps it in; projections.ErrNoView for an unknown one.
	Rebuild(ctx context.Context, view string) error
}

type verifyOutput struct{ Body handle.Report }

type backupInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"128"`
	}
}

type backupOutput struct {
	Body struct {
		Name   string `json:"name"`
		Folder string `json:"folder"`
	}
}

type rebuildInput struct {
	View string `path:"view" maxLength:"128"`
	Body struct{}
}

type rebuildOutput struct {
	Body struct {
		View string `json:"view"`
	}
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Register adds the routes.
func Register(api huma.API, e Engine) {
	tags := []string{"operations"}
	huma.Register(api, huma.Operation{
		OperationID: "verify-audit", Method: http.MethodPost, Path: "/v1/audit/verify", Tags: tags,
		DefaultStatus: http.StatusOK,
		Summary:       "Hold the log to its promises",
		Description:   "Refolds every stream, checks hashes, heads, snapshots, blobs and seals.",
	}, func(ctx context.Context, _ *struct{}) (*verifyOutput, error) {
		r, err := e.Verify(ctx)
		if err != nil {
			return nil, edge.Refusal(err)
		}
		return &verifyOutput{r}, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "make-backup", Method: http.MethodPost, Path: "/v1/backups", Tags: tags,
		DefaultStatus: http.StatusCreated,
		Summary:       "Back the log and its blobs up, while it runs",
	}, func(ctx context.Context, in *backupInput) (*backupOutput, error) {
		if !goodName.MatchString(in.Body.Name) {
			return nil, edge.Refuse(commands.Invalid, "bad_name",
				"a name is letters, digits, '.', '_' and '-', first a letter or digit",
				commands.Violation{Code: "bad_name", Pointer: "/name", Detail: "choose another name"})
		}
		folder, err := e.Backup(ctx, in.Body.Name)
		if err != nil {
			return nil, edge.Refusal(err)
		}
		out := &backupOutput{}
		out.Body.Name, out.Body.Folder = in.Body.Name, folder
		return out, nil
	})
	huma.Register(api, huma.Operation{
		OperationID: "rebuild-view", Method: http.MethodPost, Path: "/v1/views/{view}/rebuild", Tags: tags,
		DefaultStatus: http.StatusOK,
		Summary:       "Build a view anew from the log and swap it in",
	}, func(ctx context.Context, in *rebuildInput) (*rebuildOutput, error) {
		err := e.Rebuild(ctx, in.View)
		if errors.Is(err, projections.ErrNoView) {
			return nil, edge.Refuse(commands.NotFound, commands.CodeNotFound, "there is no view of that name")
		}
		if err != nil {
			return nil, edge.Refusal(err)
		}
		out := &rebuildOutput{}
		out.Body.View = in.View
		return out, nil
	})
}
