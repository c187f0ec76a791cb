package http

import (
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
)

// shown are the headers of an answer that go into the output. A task names more in responseHeaders; what identifies a
// session never goes in.
var shown = []string{
	"Cache-Control", "Content-Language", "Content-Location", "Content-Type", "Date", "Etag", "Expires", "Last-Modified",
	"Link", "Location", "Retry-After", "X-Correlation-Id", "X-Request-Id",
}

var neverShown = map[string]bool{
	"Set-Cookie": true, "Authorization": true, "Proxy-Authenticate": true, "Www-Authenticate": true,
}

// output writes {"status", "headers", "body"}. A JSON body stands in it as it came, digit for digit; another text is a
// string; what is not UTF-8 is base64, and "encoding" says so.
func (w *with) output(req *http.Request, resp *http.Response) ([]byte, *commands.Failure) {
	body, failure := read(req, resp)
	if failure != nil {
		return nil, failure
	}
	out := make([]byte, 0, len(body)+512)
	out = strconv.AppendInt(append(out, `{"status":`...), int64(resp.StatusCode), 10)
	out = w.appendHeaders(append(out, `,"headers":{`...), resp.Header)
	out = append(out, `},"body":`...)
	switch {
	case len(body) == 0:
		out = append(out, "null"...)
	case isJSON(resp.Header.Get("Content-Type")):
		if v := jsontext.Value(body); !v.IsValid() {
			return nil, &commands.Failure{
				Class: events.Permanent, Code: "invalid_response_body",
				Message: fmt.Sprintf("%s answered %d with a body that says it is JSON and is not", target(req), resp.StatusCode),
			}
		}
		out = append(out, body...)
	case utf8.Valid(body):
		out, _ = jsontext.AppendQuote(out, body) // it fails on bad UTF-8 only
	default:
		out = base64.StdEncoding.AppendEncode(append(out, '"'), body)
		out = append(out, `","encoding":"base64"`...)
	}
	return append(out, '}'), nil
}

func read(req *http.Request, resp *http.Response) ([]byte, *commands.Failure) {
	if resp.ContentLength > events.BlobBytesMax {
		return nil, tooLarge(req, resp.ContentLength)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, events.BlobBytesMax+1))
	if err != nil {
		return nil, transportFailure(req, err)
	}
	if len(body) > events.BlobBytesMax {
		return nil, tooLarge(req, int64(len(body)))
	}
	return body, nil
}

func tooLarge(req *http.Request, size int64) *commands.Failure {
	return &commands.Failure{
		Class: events.Permanent, Code: "payload_too_large",
		Message: fmt.Sprintf("%s answered with at least %d bytes, at most %d are kept", target(req), size,
			events.BlobBytesMax),
	}
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"))
}

// appendHeaders writes the members: names in lower case and in order, several values as one list of RFC 9110 §5.2.
func (w *with) appendHeaders(out []byte, h http.Header) []byte {
	names := slices.Clone(shown)
	for _, name := range w.ResponseHeaders {
		if name = http.CanonicalHeaderKey(name); !neverShown[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	first := true
	for _, name := range slices.Compact(names) {
		values := h.Values(name)
		if len(values) == 0 {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out, _ = jsontext.AppendQuote(out, strings.ToLower(name))
		out = append(out, ':')
		out, _ = jsontext.AppendQuote(out, strings.ToValidUTF8(strings.Join(values, ", "), "�"))
	}
	return out
}
