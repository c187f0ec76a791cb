package workflow

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-platform/sluice/gateways/cli"
)

// nameLine finds the name in a file that does not parse, so that the server can still say all that is wrong with it.
var nameLine = regexp.MustCompile(`(?m)^\s*"?workflow"?\s*:\s*"?([A-Za-z0-9_.-]+)`)

// readFile reads a file, or what comes in for "-". What cannot be read is a fault of the command line.
func readFile(a *cli.App, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.In)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, cli.Usagef("%s", err)
	}
	return b, nil
}

// readDefinition reads a definition and finds the workflow's name in it.
func readDefinition(a *cli.App, file string) (name string, content []byte, isYAML bool, err error) {
	if content, err = readFile(a, file); err != nil {
		return "", nil, false, err
	}
	if name = nameIn(content); name == "" {
		return "", nil, false, cli.Usagef("%s names no workflow; it needs a line like `workflow: my-name`", file)
	}
	return name, content, filepath.Ext(file) != ".json", nil
}

func nameIn(content []byte) string {
	var doc yaml.Node
	if err := yaml.Unmarshal(content, &doc); err != nil || len(doc.Content) == 0 {
		if m := nameLine.FindSubmatch(content); m != nil {
			return string(m[1])
		}
		return ""
	}
	members := doc.Content[0].Content
	for i := 0; i+1 < len(members); i += 2 {
		if members[i].Value == "workflow" {
			return members[i+1].Value
		}
	}
	return ""
}

// readJSON takes JSON from a flag: the text itself, or @file, or @- for what comes in.
func readJSON(a *cli.App, flag, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	raw := []byte(value)
	if file, is := strings.CutPrefix(value, "@"); is {
		var err error
		if raw, err = readFile(a, file); err != nil {
			return nil, err
		}
	}
	var v json.RawMessage
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, cli.Usagef("--%s is no JSON: %s; a text needs its quotes, a file its @", flag, err)
	}
	return v, nil
}
