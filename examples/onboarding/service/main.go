// Command service stands for the systems that the onboarding workflow calls: customers, identity checks, mail.
// It never forgets an Idempotency-Key while it runs, so that one can count how often each effect took place.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:7511", "address, loopback")
	flag.Parse()
	ctx := context.Background()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *listen, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(ctx context.Context, listen string, out io.Writer) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the onboarding example's service is on http://%s; effects are counted at /count\n", l.Addr())
	server := &http.Server{Handler: newService(out).routes(), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// service remembers what it was asked.
type service struct {
	out   io.Writer // told of every call
	mu    sync.Mutex
	keys  map[string]int // calls by Idempotency-Key
	calls int
}

func newService(out io.Writer) *service { return &service{out: out, keys: map[string]int{}} }

func (s *service) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("POST /customers", s.effect(func(_ *http.Request, in map[string]any) (int, any) {
		email, _ := in["email"].(string)
		if email == "" {
			return http.StatusUnprocessableEntity, map[string]any{"error": "email is missing"}
		}
		id := fmt.Sprintf("c-%08x", crc32.ChecksumIEEE([]byte(email))) // the same customer, the same id
		return http.StatusCreated, map[string]any{"id": id, "email": email}
	}))
	m.HandleFunc("GET /check/{id}", s.effect(func(r *http.Request, _ map[string]any) (int, any) {
		return http.StatusOK, map[string]any{"id": r.PathValue("id"), "verified": true}
	}))
	m.HandleFunc("POST /mails", s.effect(func(_ *http.Request, in map[string]any) (int, any) {
		return http.StatusAccepted, map[string]any{"queued": true, "to": in["to"]}
	}))
	m.HandleFunc("GET /count", s.count)
	return m
}

// effect notes the key, says so on the terminal, and answers.
func (s *service) effect(do func(*http.Request, map[string]any) (int, any)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in := map[string]any{}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
				answer(w, http.StatusBadRequest, map[string]any{"error": err.Error()})
				return
			}
		}
		keys, calls, again := s.seen(r.Header.Get("Idempotency-Key"))
		note := ""
		if again {
			note = "  (a key that was here before)"
		}
		fmt.Fprintf(s.out, "%s %s  distinct keys %d, calls %d%s\n", r.Method, r.URL.Path, keys, calls, note)
		status, out := do(r, in)
		answer(w, status, out)
	}
}

func (s *service) seen(key string) (keys, calls int, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if key != "" {
		s.keys[key]++
	}
	return len(s.keys), s.calls, s.keys[key] > 1
}

func (s *service) count(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	keys, calls := len(s.keys), s.calls
	s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"keys": keys, "calls": calls})
}

func answer(w http.ResponseWriter, status int, out any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // who asked is gone if it fails
}
