package definition

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// fromYAML reads the part of YAML that is JSON with other spelling. What means more than it shows is refused: aliases,
// merge keys, tags, duplicate keys, several documents, and numbers that JSON does not know. That does not keep the rest
// from being read; nil stands for a text that is not YAML.
func fromYAML(raw []byte, ps *problems) *node {
	d := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		ps.add(yamlError(err))
		return nil
	}
	if len(doc.Content) != 1 {
		ps.add(Problem{Code: "empty", Detail: "there is no definition; write workflow: and tasks:"})
		return nil
	}
	y := yamlReader{problems: ps}
	switch err := d.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		ps.add(yamlError(err))
	default:
		y.refuse(&more, "", "several_documents", "there is a second document; send one definition at a time")
	}
	return y.value(doc.Content[0], "", 0)
}

// yamlLine finds the place in the parser's error.
var yamlLine = regexp.MustCompile(`line (\d+)(?:, column (\d+))?`)

func yamlError(err error) Problem {
	p := Problem{Code: "bad_yaml", Detail: strings.TrimPrefix(err.Error(), "yaml: ")}
	if at := yamlLine.FindStringSubmatch(p.Detail); at != nil {
		p.Line, _ = strconv.Atoi(at[1])
		p.Column, _ = strconv.Atoi(at[2])
	}
	return p
}

type yamlReader struct{ problems *problems }

// refuse tells a problem; the node in its place keeps what is around it from being told as wrong too.
func (y *yamlReader) refuse(n *yaml.Node, pointer, code, detail string) *node {
	y.problems.add(Problem{Code: code, Pointer: pointer, Line: n.Line, Column: n.Column, Detail: detail})
	return &node{kind: broken, line: n.Line, column: n.Column}
}

func (y *yamlReader) value(n *yaml.Node, pointer string, depth int) *node {
	switch {
	case depth > depthMax:
		return y.refuse(n, pointer, "too_deep", tooDeep)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return y.refuse(n, pointer, "yaml_alias", "anchors and aliases are not read; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return y.refuse(n, pointer, "yaml_tag", "tags are not read; remove "+n.Tag)
	}
	out := &node{line: n.Line, column: n.Column}
	switch n.Kind {
	case yaml.MappingNode:
		out.kind = object
		y.members(n, out, pointer, depth)
	case yaml.SequenceNode:
		out.kind = array
		for i, item := range n.Content {
			out.items = append(out.items, y.value(item, pointer+"/"+itoa(i), depth+1))
		}
	case yaml.ScalarNode:
		return y.scalar(n, out, pointer)
	default:
		return y.refuse(n, pointer, "bad_yaml", "this is no value")
	}
	return out
}

func (y *yamlReader) members(n *yaml.Node, out *node, pointer string, depth int) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := pointer + "/" + escape(key.Value)
		value := y.value(n.Content[i+1], at, depth+1)
		switch why := badText(key.Value); {
		case key.Kind != yaml.ScalarNode || key.Anchor != "" || key.Style&yaml.TaggedStyle != 0:
			y.refuse(key, pointer, "yaml_key", "a key is a plain text, without anchor, alias or tag")
		case key.ShortTag() == "!!merge":
			y.refuse(key, at, "yaml_merge", "merge keys are not read; write the members out")
		case why != "":
			y.refuse(key, at, "bad_text", why)
		case seen[key.Value]:
			y.refuse(key, at, "duplicate_key", "this key stands twice; keep one")
		default:
			seen[key.Value] = true
			out.members = append(out.members, member{name: key.Value, line: key.Line, column: key.Column, value: value})
		}
	}
}

func (y *yamlReader) scalar(n *yaml.Node, out *node, pointer string) *node {
	if why := badText(n.Value); why != "" {
		return y.refuse(n, pointer, "bad_text", why)
	}
	out.text = n.Value
	switch n.ShortTag() {
	case "!!null":
		out.kind, out.text = null, ""
	case "!!bool":
		out.kind, out.text = boolean, strings.ToLower(n.Value)
		if out.text != "true" && out.text != "false" {
			return y.refuse(n, pointer, "yaml_boolean", "write true or false, or put quotes around a text")
		}
	case "!!int", "!!float":
		out.kind = number
		if !jsonNumber(n.Value) {
			return y.refuse(n, pointer, "yaml_number",
				"JSON does not know this number; write it in decimals, or in quotes if it is a text")
		}
	default: // texts, and what YAML takes for dates
		out.kind = text
	}
	return out
}

// jsonNumber is the grammar of RFC 8259 §6.
func jsonNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole := digits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return false
	}
	s = s[whole:]
	if rest, ok := strings.CutPrefix(s, "."); ok {
		n := digits(rest)
		if n == 0 {
			return false
		}
		s = rest[n:]
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		s = s[1:]
		if s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		n := digits(s)
		return n > 0 && n == len(s)
	}
	return s == ""
}

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
