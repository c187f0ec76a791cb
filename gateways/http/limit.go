package http

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// atMost bounds how many requests are served at once. Health and metrics do not pass here: they answer under any load.
func atMost(api huma.API, many int) func(huma.Context, func(huma.Context)) {
	places := make(chan struct{}, many)
	return func(ctx huma.Context, next func(huma.Context)) {
		if ctx.Operation().Metadata["unbounded"] == true {
			next(ctx)
			return
		}
		select {
		case places <- struct{}{}:
		default:
			ctx.SetHeader("Retry-After", "1")
			writeProblem(api, ctx, problem(http.StatusTooManyRequests, "too_many_requests",
				"this server answers as many requests as it can; ask again in a second"))
			return
		}
		defer func() { <-places }()
		next(ctx)
	}
}
