package expr

import "strings"

// piece is a stretch of a text: literal, or the inside of a ${{ }}.
type piece struct {
	text string
	expr bool
}

// split finds the expressions of a text. $${{ stands for a literal ${{. The end of an expression is the first }} that
// is in no CEL string and closes no brace of the expression's own.
func split(s string) (parts []piece, bad string) {
	var literal strings.Builder
	for {
		at := strings.Index(s, "${{")
		if at < 0 {
			literal.WriteString(s)
			break
		}
		if at > 0 && s[at-1] == '$' {
			literal.WriteString(s[:at-1])
			literal.WriteString("${{")
			s = s[at+3:]
			continue
		}
		literal.WriteString(s[:at])
		end := closing(s[at+3:])
		if end < 0 {
			return nil, "an expression is not closed; write ${{ … }}, or $${{ for the characters themselves"
		}
		if literal.Len() > 0 {
			parts = append(parts, piece{text: literal.String()})
			literal.Reset()
		}
		src := strings.TrimSpace(s[at+3 : at+3+end])
		if src == "" {
			return nil, "an expression is empty"
		}
		parts = append(parts, piece{src, true})
		s = s[at+3+end+2:]
	}
	if literal.Len() > 0 || len(parts) == 0 {
		parts = append(parts, piece{text: literal.String()})
	}
	return parts, ""
}

// closing returns where the }} of an expression stands, -1 for nowhere.
func closing(s string) int {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\'', '"':
			n := quoted(s[i:], i > 0 && (s[i-1] == 'r' || s[i-1] == 'R'))
			if n < 0 {
				return -1
			}
			i += n - 1
		case '{':
			depth++
		case '}':
			if depth > 0 {
				depth--
			} else if strings.HasPrefix(s[i:], "}}") {
				return i
			}
		}
	}
	return -1
}

// quoted is how long the CEL string at the start of s is, with its quotes; -1 when it does not end.
func quoted(s string, raw bool) int {
	quote := s[:1]
	if strings.HasPrefix(s, strings.Repeat(quote, 3)) {
		quote = s[:3]
	}
	for i := len(quote); i < len(s); i++ {
		switch {
		case s[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(s[i:], quote):
			return i + len(quote)
		}
	}
	return -1
}
