package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func ask(t *testing.T, h http.Handler, method, path, key, body string) (status int, out map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, out
}

func TestKeysAreCountedOnce(t *testing.T) {
	h := newService(io.Discard).routes()
	_, first := ask(t, h, "POST", "/customers", "k1", `{"email":"a@b.example"}`)
	_, again := ask(t, h, "POST", "/customers", "k1", `{"email":"a@b.example"}`)
	if first["id"] == nil || first["id"] != again["id"] {
		t.Errorf("the same customer is %v and %v", first["id"], again["id"])
	}
	ask(t, h, "GET", "/check/c-1", "k2", "")
	if _, n := ask(t, h, "GET", "/count", "", ""); n["keys"] != 2.0 || n["calls"] != 3.0 {
		t.Errorf("counted %v", n)
	}
}

func TestBadRequestsAreRefused(t *testing.T) {
	h := newService(io.Discard).routes()
	if status, _ := ask(t, h, "POST", "/customers", "k", `{}`); status != http.StatusUnprocessableEntity {
		t.Errorf("without an email: %d", status)
	}
	if status, _ := ask(t, h, "POST", "/customers", "k", `{`); status != http.StatusBadRequest {
		t.Errorf("half a body: %d", status)
	}
}
