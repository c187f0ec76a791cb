package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"
)

// toYAML writes JSON as YAML with its digits, its order and the kinds of its values kept.
func toYAML(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	n, err := yamlNode(d)
	if err != nil {
		return nil, fmt.Errorf("write the answer as YAML: %w", err)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return nil, fmt.Errorf("write the answer as YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write the answer as YAML: %w", err)
	}
	return b.Bytes(), nil
}

func yamlNode(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	scalar := func(tag, value string) (*yaml.Node, error) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}, nil
	}
	switch v := t.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if v == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for d.More() { // keys come as values of their own
			m, err := yamlNode(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, m)
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
		_, err := d.Token()
		return n, err
	case string:
		return scalar("!!str", v)
	case json.Number:
		return number(v.String()), nil
	case bool:
		return scalar("!!bool", fmt.Sprint(v))
	case nil:
		return scalar("!!null", "null")
	default:
		return nil, io.ErrUnexpectedEOF
	}
}

// number has the kind that a reader will take the digits for; under another the encoder would add quotes or a tag.
func number(digits string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: digits, Tag: "!!float"}
	if !strings.ContainsAny(digits, ".eE") {
		n.Tag = "!!int"
	}
	return n
}
