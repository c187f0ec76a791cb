package http

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/sluice-platform/sluice/commands"
	"github.com/sluice-platform/sluice/events"
	"github.com/sluice-platform/sluice/processors/workflow"
)

// with is a task's evaluated mapping; schema.json says the same.
type with struct {
	Method          string                    `json:"method"`
	URL             string                    `json:"url"`
	Headers         map[string]jsontext.Value `json:"headers"`
	Query           map[string]jsontext.Value `json:"query"`
	JSON            jsontext.Value            `json:"json"`
	Body            *string                   `json:"body"`
	Expect          []jsontext.Value          `json:"expect"`
	ResponseHeaders []string                  `json:"responseHeaders"`

	statuses []statusRange
}

type statusRange struct{ from, to int }

// methods are those that a task may use; CONNECT and TRACE are for proxies.
var methods = map[string]bool{
	"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true,
}

// own are the headers that belong to the connection, not to the task.
var own = map[string]bool{
	"Host": true, "Connection": true, "Content-Length": true, "Transfer-Encoding": true, "Upgrade": true, "Te": true,
	"Trailer": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authorization": true, "Expect": true,
}

func invalid(format string, args ...any) *commands.Failure {
	return &commands.Failure{Class: events.Permanent, Code: "invalid_with", Message: fmt.Sprintf(format, args...)}
}

func parseWith(text []byte) (*with, *commands.Failure) {
	w := &with{}
	if err := json.Unmarshal(text, w, json.RejectUnknownMembers(true)); err != nil {
		var place *json.SemanticError
		if errors.As(err, &place) { // its text may quote the value, which may be a secret
			return nil, invalid("with%s is not what an http task takes", place.JSONPointer)
		}
		return nil, invalid("with is not a JSON object")
	}
	if w.Method == "" {
		w.Method = http.MethodGet
	}
	w.Method = strings.ToUpper(w.Method)
	switch {
	case !methods[w.Method]:
		return nil, invalid("with.method %.20q is none of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", w.Method)
	case w.URL == "":
		return nil, invalid("with.url is missing")
	case w.JSON != nil && w.Body != nil:
		return nil, invalid("with has both json and body; give one")
	}
	for _, e := range w.Expect {
		r, ok := parseStatus(e)
		if !ok {
			return nil, invalid(`with.expect takes a status (204), a class ("2xx") or a range ("200-299"), not %.40s`, e)
		}
		w.statuses = append(w.statuses, r)
	}
	return w, nil
}

func parseStatus(v jsontext.Value) (r statusRange, ok bool) {
	text := string(v)
	if v.Kind() == '"' {
		raw, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return r, false
		}
		text = string(raw)
	}
	if class, found := strings.CutSuffix(strings.ToLower(text), "xx"); found && len(class) == 1 {
		r.from = int(class[0]-'0') * 100
		r.to = r.from + 99
	} else if from, to, found := strings.Cut(text, "-"); found {
		r.from, _ = strconv.Atoi(strings.TrimSpace(from))
		r.to, _ = strconv.Atoi(strings.TrimSpace(to))
	} else {
		r.from, _ = strconv.Atoi(text)
		r.to = r.from
	}
	return r, 100 <= r.from && r.from <= r.to && r.to <= 599
}

func (w *with) expects(status int) bool {
	if len(w.statuses) == 0 {
		return 200 <= status && status <= 299
	}
	for _, r := range w.statuses {
		if r.from <= status && status <= r.to {
			return true
		}
	}
	return false
}

// request builds the request. Its errors name the field and quote no value.
func (w *with) request(ctx context.Context, work workflow.Work) (*http.Request, error) {
	u, err := w.url()
	if err != nil {
		return nil, err
	}
	var body *bytes.Reader
	kind := ""
	switch {
	case w.JSON != nil:
		body, kind = bytes.NewReader(w.JSON), "application/json"
	case w.Body != nil:
		body, kind = bytes.NewReader([]byte(*w.Body)), "text/plain; charset=utf-8"
	}
	var req *http.Request
	if body != nil {
		req, err = http.NewRequestWithContext(ctx, w.Method, u.String(), body)
	} else {
		req, err = http.NewRequestWithContext(ctx, w.Method, u.String(), http.NoBody)
	}
	if err != nil {
		return nil, errors.New("with.url is not a URL")
	}
	id := work.Key.String()
	set(req.Header, "User-Agent", "sluice")
	set(req.Header, "Content-Type", kind)
	set(req.Header, "Idempotency-Key", id)
	set(req.Header, "X-Task-Execution-Id", id)
	set(req.Header, "X-Correlation-Id", work.Correlation)
	set(req.Header, "Traceparent", work.Trace)
	return req, w.setHeaders(req.Header)
}

func set(h http.Header, name, value string) {
	if value != "" {
		h.Set(name, value)
	}
}

func (w *with) url() (*url.URL, error) {
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" && u.Opaque != "" {
		return nil, errors.New("with.url is not a URL")
	}
	if len(w.Query) == 0 {
		return u, nil
	}
	q := u.Query()
	for name, v := range w.Query {
		values, err := texts(v)
		if err != nil {
			return nil, fmt.Errorf("with.query.%.80s %w", name, err)
		}
		for _, value := range values {
			q.Add(name, value)
		}
	}
	u.RawQuery = q.Encode()
	return u, nil
}

// setHeaders sets the definition's headers, which may replace those that every request has.
func (w *with) setHeaders(h http.Header) error {
	for name, v := range w.Headers {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if own[key] {
			return fmt.Errorf("with.headers.%s belongs to the connection and cannot be set", key)
		}
		values, err := texts(v)
		if err != nil {
			return fmt.Errorf("with.headers.%.80s %w", name, err)
		}
		if !validName(name) || strings.ContainsAny(strings.Join(values, ""), "\r\n\x00") {
			return fmt.Errorf("with.headers: %.80q has a character that no header may have", name)
		}
		h.Del(key)
		for _, value := range values {
			h.Add(key, value)
		}
	}
	return nil
}

// validName holds a header's name to RFC 9110 §5.6.2 (token).
func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return name != ""
}

// texts reads a scalar, or a list of scalars, as texts; numbers keep their digits, null is none.
func texts(v jsontext.Value) ([]string, error) {
	if v.Kind() != '[' {
		return scalar(nil, v)
	}
	var list []jsontext.Value
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, errors.New("is not a list")
	}
	var all []string
	for _, one := range list {
		var err error
		if all, err = scalar(all, one); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func scalar(all []string, v jsontext.Value) ([]string, error) {
	switch v.Kind() {
	case 'n':
		return all, nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, v)
		return append(all, string(text)), err
	case '0', 't', 'f':
		return append(all, string(v)), nil
	}
	return nil, errors.New("takes texts, numbers, true and false, or a list of them")
}
