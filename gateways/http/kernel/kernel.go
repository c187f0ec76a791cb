// Package kernel serves what belongs to no domain: audit, backups, views.
// It changes nothing that a command would change.
package kernel

import (
	"context"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/commands/handle"
	edge "github.com/sluice-platform/sluice/gateways/http"
)

// Engine is what the handlers need of the platform.
type Engine interface {
	// Verify holds the whole log to its promises.
	Verify(ctx context.Context) (handle.Report, error)
	// Backup makes a backup of that name beside the data and returns its folder.
	Backup(ctx context.Context, name string) (folder string, err error)
	// Rebuild builds a view anew and swaps it in; projections.ErrNoView for an unknown one. progress hears how many of
	// the log's events it has had; it is called from several goroutines at once.
	Rebuild(ctx context.Context, view string, progress func(done, total int64)) error
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
			return nil, edge.Refusal(ctx, err)
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
			return nil, edge.Refusal(ctx, err)
		}
		out := &backupOutput{}
		out.Body.Name, out.Body.Folder = in.Body.Name, folder
		return out, nil
	})
	rebuilds(api, e)
}
