package cli_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-platform/sluice/gateways/cli"
	"github.com/sluice-platform/sluice/gateways/cli/kernel"
)

// answering is a server with one answer.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func call(t *testing.T, server string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	a := &cli.App{In: strings.NewReader(""), Out: &o, Err: &e, Output: cli.Table, Server: server}
	a.Views = []string{"a", "b"}
	code = a.Run(t.Context(), args, kernel.Verbs)
	return code, o.String(), e.String()
}

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q is not in:\n%s", p, got)
		}
	}
}

func TestExitCodes(t *testing.T) {
	fine := answering(t, 200, `{"findings":[],"counts":{"commits":7}}`)
	found := answering(t, 200, `{"findings":[{"kind":"hash_chain","stream":"execution/default/1","version":4}]}`)
	unknown := answering(t, 404, `{"code":"view_not_found"}`)
	unready := answering(t, 503, `{"code":"not_ready"}`)
	stranger := answering(t, 500, `oops`)
	for name, c := range map[string]struct {
		server string
		args   []string
		want   int
		says   string
	}{
		"done":                               {fine, []string{"audit", "verify"}, 0, "read 7 commits"},
		"a finding is a failed outcome":      {found, []string{"audit", "verify"}, 1, "execution/default/1"},
		"nobody answers":                     {"http://127.0.0.1:1", []string{"audit", "verify"}, 3, "sluice up"},
		"an unknown verb":                    {fine, []string{"audti"}, 2, "usage:"},
		"an unknown verb of a group":         {fine, []string{"audit", "verfy"}, 2, "usage:"},
		"an unknown flag":                    {fine, []string{"audit", "verify", "--deep"}, 2, "usage:"},
		"too many arguments":                 {fine, []string{"audit", "verify", "x"}, 2, "usage:"},
		"an unknown form":                    {fine, []string{"audit", "verify", "-o", "xml"}, 2, "table, json and yaml"},
		"a server that is no address":        {"nowhere", []string{"audit", "verify"}, 2, "--server"},
		"neither a view nor all of them":     {fine, []string{"replay"}, 2, "--all"},
		"a refusal":                          {unknown, []string{"replay", "x"}, 1, "view_not_found"},
		"a server that is not ready":         {unready, []string{"backup", "x"}, 3, "not_ready"},
		"something that is no Sluice at all": {stranger, []string{"backup", "x"}, 1, "http_500"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := call(t, c.server, c.args...)
			if code != c.want {
				t.Errorf("exit code %d, want %d", code, c.want)
			}
			wants(t, out+errs, c.says)
			if code > 1 && out != "" {
				t.Errorf("a fault is said on the error stream alone, not %q", out)
			}
		})
	}
}

func TestProblemIsSaidWhole(t *testing.T) {
	server := answering(t, 422, `{"code":"invalid_definition","status":422,"detail":"2 mistakes","traceId":"t1","errors":[
		{"code":"unknown_field","pointer":"/tasks/a/typ","detail":"there is no typ","line":3},
		{"code":"cycle","detail":"a needs a"}]}`)
	_, _, errs := call(t, server, "backup", "x")
	wants(t, errs, "invalid_definition (422): 2 mistakes", "line 3 /tasks/a/typ: unknown_field: there is no typ",
		"  cycle: a needs a", "next: correct", "trace: t1")
}

func printed(t *testing.T, f cli.Format, body string) string {
	t.Helper()
	var out bytes.Buffer
	a := &cli.App{Out: &out, Output: f}
	if err := a.Print(json.RawMessage(body), nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestForms(t *testing.T) {
	body := `{"z":1.10,"a":"yes","n":12345678901234567890123,"e":1e400,"s":"12","l":[],"m":{"<k>":null},"t":true}`
	t.Run("JSON keeps digits, order and signs", func(t *testing.T) {
		out := printed(t, cli.JSON, body)
		var b bytes.Buffer
		if err := json.Compact(&b, []byte(out)); err != nil || b.String() != body {
			t.Fatalf("got %s", out)
		}
	})
	t.Run("YAML keeps digits and order, and quotes texts that look like something else", func(t *testing.T) {
		out := printed(t, cli.YAML, body)
		wants(t, out, "z: 1.10\n", "n: 12345678901234567890123\n", "s: \"12\"\n", "l: []\n", "<k>: null\n", "t: true\n",
			"e: 1e400\n")
		if strings.Contains(out, "!!") || strings.Index(out, "z:") > strings.Index(out, "a:") {
			t.Errorf("tags or order:\n%s", out)
		}
	})
}

func TestReplayOfAll(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
	defer s.Close()
	code, out, _ := call(t, s.URL, "replay", "--all")
	if code != 0 || strings.Join(asked, ",") != "POST /v1/views/a/rebuild,POST /v1/views/b/rebuild" {
		t.Fatalf("code %d, asked %q", code, asked)
	}
	wants(t, out, "a is built anew", "b is built anew")
}

func TestControlCharactersStayOutOfTables(t *testing.T) {
	server := answering(t, 200, `{"findings":[{"kind":"blob","detail":"\u001b[2J gone"}]}`)
	if _, out, _ := call(t, server, "audit", "verify"); strings.ContainsRune(out, 0x1b) {
		t.Errorf("an escape reaches the terminal: %q", out)
	}
}

func TestServerFromTheEnvironment(t *testing.T) {
	t.Setenv("SLUICE_SERVER", "http://127.0.0.1:9")
	if a := cli.New(); a.Server != "http://127.0.0.1:9" {
		t.Errorf("got %q", a.Server)
	}
}
