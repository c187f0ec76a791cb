package sluice

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// problemBytesMax bounds the body of a refusal.
const problemBytesMax = 1 << 20

// Problem is the server's refusal or failure (RFC 9457). Code is for programs and stable; Detail is for people.
type Problem struct {
	Type       string        `json:"type,omitempty"`
	Title      string        `json:"title,omitempty"`
	Status     int           `json:"status"`
	Code       string        `json:"code"`
	Detail     string        `json:"detail,omitempty"`
	Errors     []Violation   `json:"errors,omitempty"` // every one that the server found
	TraceID    string        `json:"traceId,omitempty"`
	RetryAfter time.Duration `json:"-"` // what the server asks to wait; 0: nothing
}

// Violation is one fault in what was sent.
type Violation struct {
	Code    string `json:"code"`
	Pointer string `json:"pointer,omitempty"` // JSON Pointer (RFC 6901) into the body
	Detail  string `json:"detail"`
	Line    int    `json:"line,omitempty"` // of the body, from 1; 0: not known
}

// Error is the code and the detail in one line.
func (p *Problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", p.Code, text), ": ")
}

// problemOf reads a refusal; an answer in another form keeps its status and the start of its text.
func problemOf(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, problemBytesMax)) // what came is better than nothing
	p := &Problem{}
	if err := json.Unmarshal(body, p); err != nil || (p.Code == "" && p.Title == "") {
		p = &Problem{Detail: strings.TrimSpace(string(body[:min(len(body), 500)]))}
	}
	p.Status = resp.StatusCode
	if p.Code == "" {
		p.Code = "http_" + strconv.Itoa(resp.StatusCode)
	}
	if p.Title == "" {
		p.Title = http.StatusText(resp.StatusCode)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		p.RetryAfter = time.Duration(s) * time.Second
	}
	return p
}
